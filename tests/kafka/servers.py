"""Servers as a user has them: a process of its own, or the same doors inside the test's process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from ksql.app import KsqlService
from ksql.core.config import Settings
from ksql.http.connections import listen
from ksql.spark.session.runtime import SparkRuntime
from server.app import behind_http
from server.context import AppContext
from tests.traces import assert_plain
from tests.waits import PATIENCE_S, NotYet, await_true

ROOT = Path(__file__).resolve().parents[2]
EARLIEST = {"auto.offset.reset": "earliest"}
V1_JSON = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"


class Refused(AssertionError):
    """The server answered with an error; ``body`` is what a client sees."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {json.dumps(body, indent=1)}")
        self.status = status
        self.body = body


class TableNotReady(Refused, NotYet):
    """A pull query came before the first batch of the table's query had ended."""


def _refused(response: httpx.Response) -> Refused:
    body = response.json()
    not_ready = body.get("error_code") == 50302
    return (TableNotReady if not_ready else Refused)(response.status_code, body)


class Http:
    """The REST interface of one server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=PATIENCE_S)

    def close(self) -> None:
        self.client.close()

    def ksql(self, text: str, properties: Mapping[str, Any] = EARLIEST) -> list[dict[str, Any]]:
        """POST /ksql; the entities."""
        return self._sent("/ksql", {"ksql": text, "streamsProperties": dict(properties)})

    def one(self, text: str, properties: Mapping[str, Any] = EARLIEST) -> dict[str, Any]:
        """The entity of a single statement."""
        entities = self.ksql(text, properties)
        assert len(entities) == 1, entities
        return entities[0]

    def refused(self, text: str, properties: Mapping[str, Any] = EARLIEST) -> dict[str, Any]:
        """The error body of a statement that must not be taken."""
        return self._refused("/ksql", {"ksql": text, "streamsProperties": dict(properties)})

    def refused_query(self, sql: str, properties: Mapping[str, Any] = EARLIEST) -> dict[str, Any]:
        """The error body of a query that must not be taken."""
        return self._refused("/query-stream", {"sql": sql, "properties": dict(properties)})

    def rows(self, sql: str, properties: Mapping[str, Any] = EARLIEST) -> list[list[Any]]:
        """The rows of a query that ends by itself."""
        with self.stream(sql, properties) as lines:
            _header, *rows = lines
        return rows

    @contextlib.contextmanager
    def stream(self, sql: str, properties: Mapping[str, Any] = EARLIEST) -> Iterator[Iterator[Any]]:
        """/query-stream in its delimited form, line by line; leaving the block hangs up."""
        body = {"sql": sql, "properties": dict(properties)}
        with self.client.stream(
            "POST", "/query-stream", json=body, headers={"accept": DELIMITED}
        ) as response:
            if response.is_error:
                response.read()
                raise _refused(response)
            yield (json.loads(line) for line in response.iter_lines() if line)

    def queries(self) -> dict[str, str]:
        """Persistent queries: id and state."""
        rows = self.one("SHOW QUERIES;")["queries"]
        return {q["id"]: q["state"] for q in rows if q["queryType"] != "PUSH"}

    def await_queries(self, expected: Mapping[str, str]) -> None:
        """Wait until these are the persistent queries and their states."""
        await_true(f"the queries {expected}", lambda: self.queries() == expected)

    def await_error(self, query_id: str, part: str) -> str:
        """Wait until the query is in ERROR and its newest error has that part; the error."""

        def newest() -> str:
            if self.queries()[query_id] != "ERROR":
                return ""
            errors = self.one(f"EXPLAIN {query_id};")["queryDescription"]["queryErrors"]
            text = str(errors[-1]["errorMessage"]) if errors else ""
            return text if part in text else ""

        return str(await_true(f"{query_id} in ERROR: {part}", newest))

    def await_committed(self, query_id: str, count: int) -> None:
        """Wait until the query has read and committed so many records, whatever it has written."""

        def committed() -> int:
            tasks = self.one(f"EXPLAIN {query_id};")["queryDescription"]["tasksMetadata"]
            return sum(each["committedOffset"] for task in tasks for each in task["topicOffsets"])

        await_true(f"{query_id} has committed {count}", lambda: committed() >= count)

    def catalog(self) -> dict[str, Any]:
        """What a user sees of sources, types and queries."""
        sources = {
            "streams": self.one("SHOW STREAMS;")["streams"],
            "tables": self.one("SHOW TABLES;")["tables"],
            "types": self.one("SHOW TYPES;")["types"],
            "queries": self.one("SHOW QUERIES;")["queries"],
        }
        names = [source["name"] for source in (*sources["streams"], *sources["tables"])]
        sources["described"] = [self.one(f"DESCRIBE `{n}`;")["sourceDescription"] for n in names]
        return sources

    def _sent(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        response = self.client.post(path, json=body)
        if response.is_error:
            raise _refused(response)
        entities: list[dict[str, Any]] = response.json()
        return entities

    def _refused(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.client.post(path, json=body)
        assert response.is_error, response.text
        error: dict[str, Any] = response.json()
        assert error["error_code"] // 100 == response.status_code
        assert_plain(error["message"])
        return error


# --- inside the test's process --------------------------------------------------------------------


class Hosted:
    """A service on a shared broker and a shared Spark session, behind real HTTP."""

    def __init__(
        self,
        bootstrap: str,
        runtime: SparkRuntime,
        state: Path,
        service_id: str,
        **properties: str,
    ) -> None:
        configured = {
            "ksql.state.dir": str(state),
            "ksql.service.id": service_id,
            # a registry of its own on the broker that all share
            "ksql.schema.registry.topic": f"_schemas_{service_id}",
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
        self.bootstrap = bootstrap
        self.service = KsqlService(Settings(configured), broker=bootstrap, runtime=runtime)
        self.http = Http("")
        self._context: AppContext | None = None
        self._started = contextlib.ExitStack()

    def start(self) -> Http:
        self._started.callback(self.service.stop)
        self.service.start()
        sock = self._started.enter_context(listen("127.0.0.1", 0))
        self._context = self._started.enter_context(behind_http(self.service, [sock]))
        self.http = Http(f"http://127.0.0.1:{sock.getsockname()[1]}")
        return self.http

    def stop(self) -> None:
        self.http.close()
        self._started.close()

    @property
    def running_streams(self) -> int:
        """Queries that clients read at this moment."""
        return self._context.running if self._context else 0


@contextlib.contextmanager
def hosted(
    bootstrap: str, runtime: SparkRuntime, state: Path, service_id: str, **properties: str
) -> Iterator[Http]:
    """A service for the length of a block."""
    server = Hosted(bootstrap, runtime, state, service_id, **properties)
    try:
        yield server.start()
    finally:
        server.stop()


# --- a process of its own -------------------------------------------------------------------------


def command(*arguments: str) -> list[str]:
    """The command ``ksql``, of this environment."""
    return [sys.executable, "-m", "server.entry", *arguments]


def run_command(
    *arguments: str, stdin: str = "", timeout_s: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """``ksql ..`` to its end."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=ROOT,
        check=False,
    )
    assert_plain(done.stdout + done.stderr)
    return done


class ServerProcess:
    """``ksql server`` as a process; ``script`` may stand in for the command, to crash in it."""

    def __init__(
        self,
        log: Path,
        script: Sequence[str] | None = None,
        cwd: Path = ROOT,
        own_group: bool = False,
        **properties: str,
    ) -> None:
        options = [
            part
            for name, value in {"listeners": "http://127.0.0.1:0", **properties}.items()
            for part in ("-o", f"{name.replace('__', '.')}={value}")
        ]
        self.log = log
        started = time.monotonic()
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*(script or command("server")), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=cwd,
                start_new_session=own_group,
            )
        assert self.process.stdout is not None
        try:
            line = self.process.stdout.readline()
        except BaseException:  # an interrupt: nobody else knows of the process yet
            self.kill()
            raise
        self.start_seconds = time.monotonic() - started
        if "is ready at" not in line:
            self.kill()
            raise AssertionError(f"{line}{log.read_text()}")
        self.http = Http(line.split("is ready at ")[1].split()[0].rstrip(","))

    def family(self) -> list[psutil.Process]:
        """Every process that came from this one."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def jvm_pid(self) -> int:
        """Spark's JVM, once there is one."""
        return int(await_true("Spark's JVM", self._find_jvm))

    def _find_jvm(self) -> int:
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "java" and "pyspark-shell" in process.cmdline():
                    return process.pid
        return 0

    def stop(self) -> float:
        """End it in good order; the seconds that took."""
        family = self.family()
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.log.read_text()
        self.await_gone(family)
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL; what it had started must end by itself."""
        if self.process.poll() is not None:
            self.close()
            return
        family = self.family()
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.await_gone(family)

    def await_crash(self, family: list[psutil.Process]) -> None:
        """Wait until it has killed itself, and until its family is gone."""
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL, self.log.read_text()
        self.await_gone(family)

    def await_gone(self, family: list[psutil.Process]) -> None:
        self.close()
        _gone, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
        assert alive == [], alive

    def close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()
        if hasattr(self, "http"):
            self.http.close()
