"""Several servers of one service on one state directory, each a process of its own."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.kafka.cluster import free_port
from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import Refused, ServerProcess
from tests.waits import await_true

EXACTLY = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}


class Fleet:
    """Servers by their number; the first one that is started leads."""

    def __init__(self, bootstrap: str, folder: Path, **properties: str) -> None:
        self.bootstrap, self.folder, self._properties = bootstrap, folder, properties
        self.service_id = unique("fleet") + "_"
        self.servers: dict[int, ServerProcess] = {}
        self._ports: dict[int, int] = {}
        self._stopped: list[psutil.Process] = []

    def start(
        self,
        number: int,
        bootstrap: str | None = None,
        script: Sequence[str] | None = None,
        **more: str,
    ) -> ServerProcess:
        """``script`` may stand in for the command."""
        self._ports[number] = free_port()
        return self.again(number, bootstrap, script, **more)

    def again(
        self,
        number: int,
        bootstrap: str | None = None,
        script: Sequence[str] | None = None,
        **more: str,
    ) -> ServerProcess:
        """Start a server at the address that it had before, with the stores that it has there."""
        port = self._ports[number]
        self.servers[number] = server = ServerProcess(
            self.folder / f"log{number}",
            script,
            listeners=f"http://127.0.0.1:{port}",
            bootstrap__servers=bootstrap or self.bootstrap,
            ksql__service__id=self.service_id,
            ksql__state__dir=str(self.folder / "state"),
            ksql__state__shared="true",
            ksql__schema__registry__topic=f"_schemas_{self.service_id}",
            ksql__spark__master="local[2]",
            ksql__spark__driver__memory="512m",
            **(self._properties | {name.replace("__", "."): text for name, text in more.items()}),
        )
        return server

    def pause(self, number: int) -> None:
        """Stop the server and all that it has started, as when its machine sleeps."""
        server = self.servers[number]
        self._stopped = [psutil.Process(server.process.pid), *server.family()]
        for process in self._stopped:
            process.suspend()

    def resume(self) -> None:
        for process in reversed(self._stopped):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        self._stopped = []

    def await_anew(self, number: int) -> None:
        """Wait until a server that was replaced has started itself again."""
        server = self.servers[number]
        await_true("it begins anew", lambda: "this one restarts" in server.log.read_text())
        await_true("it answers", lambda: answers(server))

    def written(self, counting: Counting) -> int:
        """How many records the queries have written."""
        topics = (counting.copy, counting.table)
        return sum(len(read_all(self.bootstrap, topic)) for topic in topics)

    def takers(self) -> list[int]:
        """The numbers of the servers that have taken over from another, once for each time."""
        logs = {int(log.name.removeprefix("log")): log for log in self.folder.glob("log*")}
        return sorted(
            number
            for number, log in logs.items()
            for _ in range(log.read_text().count("starts_leading"))
        )

    def kill(self, number: int) -> None:
        self.servers.pop(number).kill()

    def stop(self, number: int) -> None:
        self.servers.pop(number).stop()

    def close(self) -> None:
        self.resume()
        for number in list(self.servers):
            server = self.servers.pop(number)
            family = server.family() if server.process.poll() is None else []
            server.kill()
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def fleet(bootstrap: str, folder: Path, **properties: str) -> Iterator[Fleet]:
    fleet_ = Fleet(bootstrap, folder, **properties)
    try:
        yield fleet_
    finally:
        fleet_.close()


class Counting:
    """Two queries over one topic: a copy of it, and a count by key."""

    def __init__(self, fleet_: Fleet) -> None:
        self._bootstrap = fleet_.bootstrap
        stem = unique("t").upper()
        self.source, self.copy, self.table = f"SRC_{stem}", f"OUT_{stem}", f"CNT_{stem}"
        self.sent = 0
        create_topic(self._bootstrap, self.source, 2)

    def declare(self, server: ServerProcess, properties: dict[str, str]) -> None:
        server.http.ksql(
            f"CREATE STREAM {self.source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.source}', VALUE_FORMAT='JSON');"
            f"CREATE STREAM {self.copy} AS SELECT * FROM {self.source};"
            f"CREATE TABLE {self.table} AS SELECT K, COUNT(*) AS C FROM {self.source} GROUP BY K;",
            properties,
        )

    def send(self, count: int) -> None:
        records = [(f"k{n % 5}", {"N": n}) for n in range(self.sent, self.sent + count)]
        for partition in (0, 1):
            mine = [record for record in records if record[1]["N"] % 2 == partition]
            produce(self._bootstrap, self.source, mine, partition)
        self.sent += count

    def copied(self) -> list[int]:
        return sorted(seen.value["N"] for seen in read_all(self._bootstrap, self.copy))

    def counts(self) -> dict[str, list[int]]:
        """The counts of each key, in the order in which they were written."""
        values_by_key: dict[str, list[int]] = {}
        for seen in read_all(self._bootstrap, self.table):
            values_by_key.setdefault(str(seen.key), []).append(seen.value["C"])
        return values_by_key

    def is_counted(self) -> bool:
        counts = self.counts()
        expected = {f"k{k}": len(range(k, self.sent, 5)) for k in range(5)}
        return {key: values[-1] for key, values in counts.items()} == expected

    def await_counted(self) -> float:
        """Wait until all that was sent has been counted and copied; the seconds that took."""
        began = time.monotonic()
        await_true("all is counted", self.is_counted)
        await_true("all is copied", lambda: set(self.copied()) == set(range(self.sent)))
        return time.monotonic() - began

    def await_committed(self, server: ServerProcess) -> None:
        """Wait until the queries have committed all: a batch that has written may come again."""
        ids = await_true("the queries", server.http.queries)
        for name in (self.copy, self.table):
            [query_id] = [each for each in ids if f"_{name}_" in each]
            server.http.await_committed(query_id, self.sent)


def sources(server: ServerProcess) -> set[Any]:
    entities = server.http.ksql("SHOW STREAMS; SHOW TABLES;")
    return {each["name"] for kind in entities for each in kind.get("streams", kind.get("tables"))}


def answers(server: ServerProcess) -> bool:
    """Whether a server takes requests."""
    try:
        return server.http.client.get("/info").is_success
    except httpx.TransportError:
        return False


def taken(server: ServerProcess, text: str) -> bool:
    """Whether a server takes a statement; no server may lead, or this one start again."""
    try:
        server.http.ksql(text)
    except (httpx.TransportError, Refused):
        return False
    return True
