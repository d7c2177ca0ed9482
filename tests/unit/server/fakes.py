"""A service made of lists, for tests of the doors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ksql.cluster.members import ClusterStatus, HostStatus, HostStoreLags
from ksql.cluster.replicas.read_request import Processed, Unreachable
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.cluster.replicas.replicated import Caller
from ksql.control.engine.ports import CommandStatus
from ksql.control.statements.dry_run import DryRun
from ksql.control.statements.entities import CurrentStatus, Entity
from ksql.control.statements.execute import Health, RequestFailed, ServerInfo, UnknownField
from ksql.control.statements.queryhistory import QueryHistory, QuerySample
from ksql.core.config import Settings
from ksql.core.errors import KsqlError, ServerError, StatementError
from ksql.core.records import Written
from ksql.core.tallies import Counts
from ksql.core.token import Token, TokenScope
from ksql.core.types import model
from ksql.core.types.schema import Column, Role
from ksql.serving.browsing import (
    BrowsedRecord,
    BrowsedRecords,
    BrowseRequest,
    HeaderText,
    PartitionExtent,
)
from ksql.serving.results import ResultRow, ResultStream, TextStream
from server.service import RowInserter, ServerProcess, StartedRequest

if TYPE_CHECKING:
    import ssl

    from ksql.cluster.members import Server
    from ksql.cluster.replicas.read_request import ReadRequest, ReadResult
    from ksql.core.token import ServerSecret

Answer = Callable[[str], list[Entity] | None] | Sequence[Entity] | Exception
HERE = TokenScope()  # of which tokens without a scope are
COLUMNS = (Column("ID", model.INTEGER, Role.KEY), Column("NAME", model.STRING))


@dataclass(eq=False)
class FakeStream:
    """Yields its batches; an exception among them is raised; a push query then waits."""

    rows: Sequence[list[ResultRow] | Exception] = ()
    kind: Literal["pull", "push"] = "push"
    columns: tuple[Column, ...] = COLUMNS
    query_id: str | None = "transient_S_1"
    ends_with: str | None = None
    token: Callable[[], Token] | None = None
    notes: Callable[[], list[str]] = list
    final_message: str | None = None
    marks_deletes: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def batches(self) -> Iterator[list[ResultRow]]:
        for batch in self.rows:
            if isinstance(batch, Exception):
                raise batch
            yield batch
        if self.kind == "push" and self.ends_with is None:
            while not self.ended.wait(0.02):
                yield []
        self.final_message = self.ends_with

    def close(self) -> None:
        self.ended.set()


@dataclass(eq=False)
class FakeText:
    """PRINT's lines."""

    texts: Sequence[list[str] | Exception] = ()
    kind: Literal["print"] = "print"
    query_id: str | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def lines(self) -> Iterator[list[str]]:
        for batch in self.texts:
            if isinstance(batch, Exception):
                raise batch
            yield batch

    def close(self) -> None:
        self.ended.set()


def rows(*values: tuple[Any, ...]) -> list[ResultRow]:
    return [ResultRow(v) for v in values]


def created(name: str = "S", text: str = "CREATE STREAM S ...;") -> CurrentStatus:
    return CurrentStatus(
        statement_text=text,
        command_id=f"stream/`{name}`/create",
        command_status=CommandStatus("SUCCESS", "Stream created"),
        command_sequence_number=3,
    )


@dataclass
class FakeRows(RowInserter):
    """Takes rows whose A is an integer and that have no Z."""

    service: FakeService
    written: Written | None = None

    def begin(self, row: Mapping[str, Any]) -> FakeRows:
        if "Z" in row:
            raise UnknownField("there is no Z")
        if not isinstance(row.get("A"), int):
            raise StatementError("A is wrong")
        if row["A"] < 0:
            raise ServerError("no broker")
        self.service.calls.append(("row", dict(row)))
        return FakeRows(self.service, Written("s", 0, row["A"]))

    def wait(self) -> Written | None:
        """A row is there at once, before the offset that its A says."""
        return self.written


class FakeRunning(StartedRequest):
    """A request that is answered once its answer is no longer None."""

    def __init__(self, answer: Answer, text: str) -> None:
        self.answer = answer
        self.text = text

    def proceed(self) -> list[Entity] | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer = self.answer(self.text) if callable(self.answer) else self.answer
        return None if answer is None else list(answer)


@dataclass
class FakeService(ServerProcess):
    """Answers every statement with the same, and remembers what it was asked."""

    answer: Answer = ()
    caught_up: Callable[[], bool] = lambda: True
    stream: Callable[[], ResultStream | TextStream] | Exception | None = None
    ready_stream: ResultStream | Exception | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    tombstones: list[bool] = field(default_factory=list)
    caller: Caller | None = None
    token: Token | None = None
    healthy: bool = True
    lost: str = ""
    start_error: Exception | None = None
    start_s: float = 0.0
    events: list[str] = field(default_factory=list)
    again: bool = False
    terminated: bool = False
    headless: str = ""
    credentials: str = ""
    user: str = ""
    other: Server | None = None
    scheme: str = "http"
    scope: TokenScope = HERE
    tls: ssl.SSLContext | None = None
    secret: ServerSecret | None = None
    on_lost: Callable[[], object] = lambda: None
    host: str = "127.0.0.1:8088"
    reasons: Mapping[str, str] = field(default_factory=dict)

    def metrics(self, accept: str, unready: Sequence[str], requests: Counts) -> tuple[bytes, str]:
        self.calls.append(("metrics", accept, *unready))
        self.requests = requests
        return b"ksql_ready 1.0\n", "text/plain; charset=utf-8"

    def history(self, query_id: str) -> QueryHistory:
        sample = QuerySample(
            time=7,
            state="RUNNING",
            in_per_second=2.5,
            out_per_second=1.0,
            batch_seconds=None,
            plan_seconds=None,
            run_seconds=None,
            log_seconds=None,
            skipped=0,
            lag_records=3,
            lag_seconds=0.5,
            state_bytes=4096,
        )
        return QueryHistory(query_id, (sample,))

    def unready(self) -> Mapping[str, str]:
        return self.reasons

    @property
    def is_follower(self) -> bool:
        return self.other is not None

    def forward_target(self, *_request: Any) -> Server | None:
        return self.other

    def is_leader(self, server: Server) -> bool:
        return server == self.other

    def leader(self) -> Server:
        assert self.other is not None
        return self.other

    def start(self) -> None:
        self.events.append("start")
        time.sleep(self.start_s)
        if self.start_error:
            raise self.start_error

    def leave(self) -> None:
        self.events.append("leave")

    def stop(self) -> None:
        self.events.append("stop")

    def begin(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        credentials: str = "",
        token: Token | None = None,
        user: str = "",
    ) -> StartedRequest:
        self.credentials, self.token, self.user = credentials, token, user
        self.calls.append((text, dict(properties), dict(variables)))
        return FakeRunning(self.answer, text)

    def dry_run(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> list[Entity]:
        self.calls.append(("dry run", text, dict(properties), dict(variables)))
        return [DryRun(statement_text=text, message="Stream created")]

    def awaiting(self, offset: int) -> Callable[[], bool]:
        self.calls.append(("await", offset))
        return self.caught_up

    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
        caller: Caller | None = None,
    ) -> ResultStream | TextStream:
        self.caller = caller
        self.calls.append((text, dict(properties), dict(variables)))
        self.tombstones.append(tombstones)
        if isinstance(self.stream, Exception):
            raise self.stream
        if self.stream is None:
            raise RequestFailed(KsqlError("no query"), text)
        return self.stream()

    def at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        if isinstance(self.ready_stream, Exception):
            raise self.ready_stream
        return self.ready_stream

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowInserter:
        self.calls.append(("inserts", target, dict(properties)))
        if target != "S":
            raise RequestFailed(StatementError(f"no stream {target}"))
        return FakeRows(self)

    def close_query(self, query_id: str) -> bool:
        return query_id == "transient_S_1"

    def browse(self, ask: BrowseRequest) -> BrowsedRecords:
        self.calls.append(("browse", ask))
        record = BrowsedRecord(0, 3, 7, "k", None, (HeaderText("h", "v"),))
        extent = PartitionExtent(0, 1, 9, 4)
        return BrowsedRecords(ask.topic, ("KAFKA_STRING",), ("JSON",), (record,), (extent,))

    def addresses(self):
        return {"schema registry": "http://127.0.0.1:8081"}

    def info(self) -> ServerInfo:
        return ServerInfo("0.2.0", "cluster-1", "default_")

    def health(self) -> Health:
        self.calls.append(("health",))
        details = {"metastore": True, "kafka": self.healthy, "commandRunner": not self.lost}
        return Health(details, {"commandRunner": self.lost})

    def cluster_status(self) -> ClusterStatus:
        status = HostStatus(True, 7, {}, HostStoreLags({}, 7))
        return ClusterStatus({self.host: status})

    def note_alive(self, host: str) -> None:
        self.calls.append(("note_alive", host))

    def reported(self, host: str, lags: HostStoreLags) -> None:
        self.calls.append(("reported", host, lags))

    def replica_statuses(self) -> dict[tuple[str, int], ReplicaStatus]:
        return {("CTAS_T_1", 0): ReplicaStatus(state="RUNNING", role="ACTIVE", position=3)}

    def read_replica(self, ask: ReadRequest) -> ReadResult:
        raise Unreachable(f"no copy of {ask.query_id} is here")

    def report(self, queries: Sequence[str]) -> bytes:
        return b"{}"

    def processed(self, query_id: str) -> Processed:
        return Processed({})

    def holders(self, table: str, key: list[Any] | None) -> list[dict[str, Any]]:
        place = {"partition": 0, "topic": "T", "query": "CTAS_T_1"}
        return [{**place, "active": self.host, "standbys": []}]

    def statuses(self) -> Mapping[str, CommandStatus]:
        return {"stream/`S`/create": CommandStatus("SUCCESS", "Stream created")}

    def status(self, command_id: str) -> CommandStatus | None:
        return self.statuses().get(command_id)

    def check_property(self, name: str) -> None:
        Settings().settable(name)

    def terminate(self, delete_topics: Sequence[str]) -> list[Entity]:
        self.calls.append(("terminate", list(delete_topics)))
        return []
