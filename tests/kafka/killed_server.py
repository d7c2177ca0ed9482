"""A server as a process that is killed and comes again, and how far its queries have read."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ksql.kafka.admin import Admin
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from tests.chains.cases import Lying
from tests.kafka.records import unique
from tests.kafka.servers import Http, ServerProcess
from tests.waits import await_true

SETTLE_S = 600.0
"""How long queries may take for all that there is."""


class Site:
    """A service of its own on the shared broker, whose server may be killed at any time."""

    def __init__(self, bootstrap: str, folder: Path, **properties: str) -> None:
        self.bootstrap = bootstrap
        self.service_id = unique("site") + "_"
        self._kafka = KafkaSettings(bootstrap)
        self._admin = Admin(self._kafka)
        self._log = folder / "log"
        self._properties = {
            "ksql__state__dir": str(folder / "state"),
            "ksql__service__id": self.service_id,
            "bootstrap__servers": bootstrap,
            "ksql__spark__master": "local[2]",
            "ksql__query__retry__backoff__initial__ms": "1000",
            "ksql__query__retry__backoff__max__ms": "4000",
            "ksql__query__replace__timeout__ms": "80000",
            **properties,
        }
        self._server: ServerProcess | None = None

    @property
    def http(self) -> Http:
        """The server's REST interface."""
        assert self._server is not None
        return self._server.http

    def start(self) -> None:
        """Start a server on what is there."""
        self._server = ServerProcess(self._log, **self._properties)

    def crash(self) -> None:
        """Kill the server with SIGKILL; all that it has started ends by itself."""
        assert self._server is not None
        family = self._server.family()
        os.kill(self._server.process.pid, signal.SIGKILL)
        self._server.await_crash(family)
        self._server = None

    def crash_spark(self) -> None:
        """Kill Spark's JVM with SIGKILL; the server starts another one."""
        assert self._server is not None
        os.kill(self._server.jvm_pid(), signal.SIGKILL)

    def close(self) -> None:
        """End whatever runs."""
        if self._server is not None:
            self._server.kill()
        self._admin.close()

    def create(self, statements: Sequence[str], **properties: str) -> list[str]:
        """Run statements that make queries; their ids."""
        answers = self.http.ksql("\n".join(statements), properties)
        ids = [answer["commandStatus"].get("queryId") for answer in answers]
        assert len(ids) == len(statements)
        assert all(ids), answers
        return ids

    def read_so_far(self, query_id: str) -> dict[tuple[str, int], int]:
        """Up to which offset of each partition a query has processed and committed."""
        tasks = self.http.one(f"EXPLAIN {query_id};")["queryDescription"]["tasksMetadata"]
        return {
            (
                each["topicPartitionEntity"]["topic"],
                each["topicPartitionEntity"]["partition"],
            ): each["committedOffset"]
            for task in tasks
            for each in task["topicOffsets"]
        }

    def settle(self, query_ids: Collection[str]) -> None:
        """Wait until the queries have processed all that is there; name them in their order.

        What stands before a query in the chain is quiet then, so that its sources end for good.
        """
        for query_id in query_ids:
            await_true(f"{query_id} is quiet", lambda each=query_id: self._is_quiet(each), SETTLE_S)

    def _is_quiet(self, query_id: str) -> bool:
        reached = self.read_so_far(query_id)
        topics = {topic for topic, _ in reached}
        ends = self._admin.end_offsets(topics, committed=False)
        return bool(reached) and all(reached.get(place, 0) >= end for place, end in ends.items())

    def records(self, topics: Sequence[str]) -> Iterator[Lying]:
        """All committed records of the topics, each partition's in its order."""
        with Reader(self._kafka) as reader:
            reader.assign_topics(list(topics))
            for batch in reader.read_to_end():
                for each in batch:
                    yield Lying(each.topic, each.partition, each.key, each.value, each.timestamp)


@contextlib.contextmanager
def site(bootstrap: str, folder: Path, **properties: str) -> Iterator[Site]:
    """A service whose server runs, for the length of a block."""
    site_ = Site(bootstrap, folder, **properties)
    try:
        site_.start()
        yield site_
    finally:
        site_.close()
