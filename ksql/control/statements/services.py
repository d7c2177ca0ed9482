"""The parts of the service that statements need, and the state of one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ksql.control.access import Requester, current
from ksql.control.engine.catch_up import CatchUpSpeed
from ksql.control.engine.engine import Engine
from ksql.control.pull_metrics import PullMetrics
from ksql.control.statements.entities import Entity
from ksql.core import KsqlError, PerSecond, QueryId, QueryVersion, Settings, Tally, TooManyRequests
from ksql.kafka.connect import Connect
from ksql.sql.plan import QueryPlan

if TYPE_CHECKING:
    from ksql.control.statements.upgradereport import UpgradeDescription, UpgradeReport
    from ksql.core import Headers, RawRecord, Written

Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class StageState:
    """The state of one stage of a query, in those of its buckets that were seen lately."""

    stage: int
    rows: int
    size_bytes: int
    buckets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHealth:
    """How a persistent query does; errors and warnings are (time in ms, text).

    The counts are of the server that runs it, since it began. They are records of all its sources
    together and records written, both also per second of the last half minute. The last is when it
    last read any (0: never). ``state`` is RUNNING, PAUSED, ERROR or UNRESPONSIVE. ``host`` is the
    server that runs the query, if it is another one, and ``known`` whether more than the state is
    known of it. ``stages`` is what its stages keep. ``store`` is how the server that is asked keeps
    its table for pull queries.
    """

    state: str
    errors: tuple[tuple[int, str], ...] = ()
    rows_in: int = 0
    rows_out: int = 0
    rows_in_per_s: float = 0.0
    rows_out_per_s: float = 0.0
    last_ms: int = 0
    warnings: tuple[tuple[int, str], ...] = ()
    stages: tuple[StageState, ...] = ()
    store: str = ""
    host: str = ""
    known: bool = True


class ConditionPending(Exception):
    """A statement waits for a condition: ``error`` is what it fails with after ``patience_ms``."""

    def __init__(self, error: KsqlError, patience_ms: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.patience_ms = patience_ms


class Monitor(Protocol):
    """The present facts about running queries and topics."""

    def health(self, query_id: str) -> QueryHealth:
        """Return how the query does; state ``PAUSED`` or ``ERROR`` if it does not run."""

    def spark_plan(self, query_id: str) -> str:
        """Return Spark's plan of its last batch; empty before the first."""

    def skipped(self, query_id: str) -> int:
        """Return how many records it could not handle since this server began."""

    def committed(self, query_id: str) -> Offsets:
        """Return how far it has read: topic -> partition -> next offset."""

    def application(self, query_id: str) -> str:
        """Return the query's name in Kafka, the prefix of its groups; empty if unknown."""

    def topics(self) -> Mapping[str, Sequence[int]]:
        """Return all topics: the number of replicas of each partition."""

    def ends(self, topics: Sequence[str]) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return first and end offset of every partition; unknown topics are left out."""


@dataclass(frozen=True, slots=True)
class OpenPush:
    """A push query that a client is reading; ``host`` is its server, if that is another one.

    ``user`` is who has started it; empty if that is not known here.
    """

    text: str
    plan: QueryPlan
    host: str = ""
    user: str = ""


class Delivery(Protocol):
    """A record that is under way."""

    def wait(self) -> Written | None:
        """Return, once this very record is acknowledged, where it is; None where nobody asks.

        Raises: what became of it instead.
        """


class Writer(Protocol):
    """Writes single records, for INSERT VALUES and rows over HTTP; for many threads at once."""

    def begin(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Hand a record over; records of one thread keep their order."""


Partition = tuple[str, int]


class Records(Protocol):
    """The records of topics, for a look at some of them."""

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Mapping[Partition, int]:
        """Return the offset of the first record at or after that time, of every partition."""

    def read(
        self, spans: Mapping[Partition, tuple[int, int]], most: int | None = None
    ) -> Sequence[RawRecord]:
        """Return the records from the first to before the second offset of each partition.

        The first ``most`` of each that come within some seconds.
        """

    def read_some(
        self, spans: Mapping[Partition, tuple[int, int]]
    ) -> tuple[Sequence[RawRecord], bool]:
        """Return what ``read`` does, and whether these are all records of the spans."""


class NoRecords:
    """The records of a service without topics."""

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Mapping[Partition, int]:
        """Know of none."""
        del topics, time_ms
        return {}

    def read(
        self, spans: Mapping[Partition, tuple[int, int]], most: int | None = None
    ) -> Sequence[RawRecord]:
        del spans, most
        return ()

    def read_some(
        self, spans: Mapping[Partition, tuple[int, int]]
    ) -> tuple[Sequence[RawRecord], bool]:
        del spans
        return (), True


class UpgradeReports:
    """The history of upgrades, as statements show it; this one is of a service without a ledger."""

    def last(self, query_id: QueryId, since: int = -1) -> UpgradeReport | None:
        """Return the last replacement of a query; None if none is known.

        ``since`` is the offset of the command that began it: an id may have been another query's.
        """
        return None

    def upgrades(self, query_id: QueryId | None) -> Sequence[UpgradeDescription] | None:
        """Return the latest of one query or of all, newest first; None if it cannot be read."""
        return None

    def upgrade(self, upgrade_id: str) -> UpgradeDescription | None:
        """Return the one of that id; None if there is none, or if the history cannot be read."""
        return None


class CommandRate:
    """How many statements a second may be appended to the command topic."""

    def __init__(self, limit: int, now_ms: Callable[[], int]) -> None:
        self._limit = limit
        self._rate = PerSecond(limit, now_ms)

    def take(self) -> None:
        """Count one more.

        Raises: TooManyRequests.
        """
        if not self._rate.take():
            raise TooManyRequests(
                "DDL/DML rate is crossing the configured rate limit of "
                f"{float(self._limit)} statements/second.",
                hint="Send it again later.",
            )


@dataclass(kw_only=True)
class Services:
    """Everything that a handler may use.

    ``now_ms`` is the clock, ``close_push`` ends a push query, ``pushes`` lists the running ones.
    ``history`` has the upgrades; ``rebuild_problem`` says why a cut-over failed,
    ``rebuild_growth`` the speeds of a candidate that does not catch up. ``check_kafka``
    raises if Kafka is known to be away: what writes to it need not wait to find that out. ``pulls``
    counts the pull queries of a table or stream, by the server that answered them. ``commands``
    limits the rate of distributed statements. ``gaps`` says what the answers so far lack, because
    another server did not answer; once. ``await_rebuild`` waits so many seconds for
    a cut-over, and says what kept it. ``records`` are those of the sources, for EXPLAIN.
    ``statements`` counts those that were carried out, by kind and outcome. ``connect`` is Kafka
    Connect.
    """

    engine: Engine
    monitor: Monitor
    writer: Writer
    now_ms: Callable[[], int]
    host: str = "localhost:8088"
    close_push: Callable[[str], bool] = lambda _query_id: False
    pushes: Callable[[], Sequence[OpenPush]] = tuple
    history: UpgradeReports = field(default_factory=UpgradeReports)
    rebuild_problem: Callable[[QueryVersion], str] = lambda _version: ""
    rebuild_growth: Callable[[QueryVersion], CatchUpSpeed | None] = lambda _version: None
    pulls: Callable[[str], Mapping[str, PullMetrics]] = lambda _name: {}
    check_kafka: Callable[[], None] = lambda: None
    commands: CommandRate | None = None
    gaps: Callable[[], Sequence[str]] = tuple
    await_rebuild: Callable[[QueryVersion, float], str] = lambda _version, _timeout_s: ""
    records: Records = field(default_factory=NoRecords)
    statements: Tally = field(default_factory=Tally)
    connect: Connect = field(default_factory=Connect)


@dataclass
class Request:
    """The state of one request or script: settings and variables change as its statements run.

    ``user`` is who has signed in; empty without users. ``requester`` says what it may do.
    """

    services: Services
    settings: Settings
    variables: dict[str, str] = field(default_factory=dict)
    text: str = ""
    written: dict[tuple[str, int], int] = field(default_factory=dict)
    """The ends of its records, by topic and partition."""
    user: str = ""
    requester: Requester = field(default_factory=current)

    def wrote(self, written: Written | None) -> None:
        """Remember a record that was written."""
        if written is not None:
            partition = written.topic, written.partition
            self.written[partition] = max(written.end, self.written.get(partition, 0))

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self.services.engine


Handler = Callable[[Any, Request], Entity | None]
Handlers = Mapping[type, Handler]
"""The handler of each kind of statement."""
