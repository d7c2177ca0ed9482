"""Specifications, states and errors of queries, what starts and ends one, and shared settings."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

from ksql.core import QueryVersion, Settings
from ksql.core.process import Lease
from ksql.exec.dataflow import packed, unpacked
from ksql.exec.dataflow.load import load
from ksql.functions.user import Limits
from ksql.kafka import RegistrySettings
from ksql.spark.query.failures import reason
from ksql.spark.query.internals import FULL_SHARE
from ksql.spark.task.codes import as_it_runs
from ksql.spark.task.kept_state import KeptState
from ksql.spark.task.launch_right import LaunchRight
from ksql.spark.task.task_environment import Loader

if TYPE_CHECKING:
    from ksql.sql.catalog import PersistentQuery


StartAt = Literal["earliest", "latest"] | Mapping[int, int]
"""Where a topic's first batch begins: at one end, or at an offset for each partition."""


@dataclass(frozen=True)
class QueryLocation:
    """The facts about a version before it can be started; ``space`` is that of ``QuerySpec``."""

    version: QueryVersion
    space: str
    checkpoint: Path

    @property
    def name(self) -> str:
        """Its name in Spark."""
        return self.version.spark_name(self.space)


class Link(NamedTuple):
    """The topics of a query: the one that it writes, and those that it reads.

    ``query`` is its id, which all its versions have; where it is not stated, there is one version.
    ``begun`` grows with each time that it should run again; 0 while it is stopped or fails.
    """

    sink: str
    sources: tuple[str, ...]
    begun: int = 0
    exactly_once: bool = False
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class QuerySpec:
    """A query as the runtime starts it; everything that a restart needs again.

    Attributes:
        version: The version of a persistent query; its scheduling pool is named like it.
        plan_json: The plan that the workers compile.
        topics: The source topics; the start counts only while the checkpoint is new.
        checkpoint: The version's own directory; a former plan's is taken over as it is.
        stages: How many stateful stages the plan has; fixed with the checkpoint.
        partitions: Shuffle partitions and buckets of the exchanges; fixed with the checkpoint.
        moved: Whether results cross an exchange on their way to the sink; fixed like those.
        result_partitions: Over how many partitions of the sink's topic results are divided, of
            which each has one writer; fixed like those. 0: over all that it has.
        consumer: Kafka client properties of the source (Java names).
        producer: Kafka client properties of the sink (librdkafka names).
        exactly_once: ``processing.guarantee = exactly_once_v2``.
        trigger_ms: The pause between two looks at the source.
        max_records: The most records that one batch takes; bounds the latency of a catch-up.
        max_bytes: About how many bytes of a stateful query's records a batch takes; 0: any.
        first_records: The most records of the first batches, by the size of those that wait.
        until: The offsets at which it ends: batches come up to there, and none afterwards. A topic
            or partition that they do not name ends where it begins; None: it has no end.
        kept: The state that it takes over in one batch without records, at these offsets.
        weight: That of its scheduling pool.
        fail_on_data_loss: Whether records that the broker has already deleted stop the query.
        log_topic: The processing log's topic.
        log_rows: Whether the processing log shows the rows that failed.
        ahead_ms: How far ahead of the clock a record may be without a warning; 0: however far.
        strict: ``ksql.fail.on.production.error``: a record that the broker refuses ends the query.
        application_id: The version's name in Kafka: groups, transactions.
        sink_topic: Where the results go; its limits are asked for at each start.
        chain: The topics that each query that runs here writes and reads, by its name in Spark, at
            each launch.
        upstream_wait_ms: How long a query that is stopped or fails is waited for by its readers.
        loader: Compiles the plan in the workers.
        space: Separates the queries of services that share a session.
        incarnation: The one that the checkpoint must hold at each start; None: not looked at.
        lease: The right to write, which its tasks ask for.
        gate: Where its source waits as long as it is closed; empty: nowhere.
        reader: Kafka client properties (librdkafka names) with which the tasks read the source's
            ranges; None: Spark's own source reads.
        launch: An id that no other launch has; empty: its tasks may write however it ends.
    """

    version: QueryVersion
    plan_json: str
    topics: Mapping[str, StartAt]
    checkpoint: Path
    stages: int = 0
    partitions: int = 1
    moved: bool = False
    result_partitions: int = 0
    consumer: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)
    exactly_once: bool = False
    trigger_ms: int = 100
    max_records: int = 500_000
    max_bytes: int = 0
    first_records: int | None = None
    until: Mapping[str, Mapping[int, int]] | None = None
    kept: KeptState | None = None
    weight: int = FULL_SHARE
    fail_on_data_loss: bool = True
    log_topic: str | None = None
    log_rows: bool = False
    strict: bool = True
    ahead_ms: int = 0
    application_id: str = ""
    sink_topic: str | None = None
    chain: Mapping[str, Link] = field(default_factory=dict)
    upstream_wait_ms: int = 0
    loader: Loader = load
    space: str = ""
    incarnation: str | None = None
    lease: Lease | None = None
    gate: str = ""
    reader: Mapping[str, str] | None = None
    launch: str = ""

    def again(self) -> QuerySpec:
        """Return the same for another launch, whose tasks have a right of their own."""
        return replace(self, launch=uuid.uuid4().hex) if self.launch else self

    @property
    def right(self) -> LaunchRight:
        """The right to write of the tasks of this launch alone."""
        return LaunchRight(str(self.checkpoint), self.launch)

    @property
    def query_id(self) -> str:
        """The persistent query's id."""
        return self.version.query_id

    @property
    def name(self) -> str:
        """Return the version's name in Spark; ``space`` makes it unique in a shared session."""
        return self.version.spark_name(self.space)

    @property
    def place(self) -> QueryLocation:
        """Where it is."""
        return QueryLocation(self.version, self.space, self.checkpoint)

    @property
    def application(self) -> str:
        """Return the version's name in Kafka."""
        return self.application_id or f"ksql-{self.version.name}"


class State(Enum):
    """Where a query is in its incarnation."""

    RUNNING = "RUNNING"
    ERROR = "ERROR"  # failed; tried again after a pause
    STOPPED = "STOPPED"


Cause = Literal["start", "batch", "end", "source"]
"""What has failed: a start or a batch; it ended by itself; or its topic or checkpoint is gone."""


@dataclass(frozen=True)
class Failure:
    """One failure of a query, as a user reads it; ``trace`` is for the server's log."""

    when_ms: int
    message: str
    trace: str = ""
    cause: Cause = "batch"


def failure(trace: str, message: str = "", cause: Cause = "batch") -> Failure:
    """Return a failure of this moment; without a ``message`` for users the trace gives it."""
    return Failure(int(time.time() * 1000), message or reason(trace), trace, cause)


@dataclass(frozen=True)
class Status:
    """How a query does."""

    state: State
    failures: tuple[Failure, ...] = ()

    @property
    def last_error(self) -> str | None:
        """The newest failure's text."""
        return self.failures[-1].message if self.failures else None


@dataclass(frozen=True)
class RetryPolicy:
    """How long a failed query rests; doubled each time, reset by a good batch."""

    initial_ms: int = 1_000
    max_ms: int = 60_000
    kept_failures: int = 10

    def pause_ms(self, attempt: int) -> int:
        """Return the pause before try number ``attempt`` (from 0)."""
        return min(self.max_ms, self.initial_ms << min(attempt, 20))


@dataclass(frozen=True, kw_only=True)
class RunnerContext:
    """The context that queries share: clients' properties, directory, processing log.

    ``reader`` are the client's properties where the workers read the source (librdkafka names).
    ``functions`` are the texts of the user functions' files. ``space`` tells services apart that
    share a session; ``registry`` is where the schema registry is. ``anew`` and ``older`` are the
    queries' ``RecoveryOverrides``; ``lease`` is the right to write. ``limits`` are those of user
    functions.
    """

    settings: Settings
    directory: Path
    consumer: Mapping[str, str]
    producer: Mapping[str, str]
    log_topic: str | None
    reader: Mapping[str, str] | None = None
    space: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    registry: RegistrySettings | None = None
    start_over: frozenset[str] = frozenset()
    older: frozenset[str] = frozenset()
    lease: Lease | None = None
    limits: Limits = Limits()  # noqa: RUF009 - immutable

    def packed(self, plan_json: str) -> str:
        """Return a stored plan with all that its workers need."""
        return packed(plan_json, self.functions, self.registry, self.limits)

    def packed_as_run(self, query: PersistentQuery, checkpoint: Path) -> str:
        """Return a query's plan as it runs from a checkpoint, with all that its workers need.

        Raises: CheckpointDamaged, NewerCheckpoint, OSError.
        """
        text = self.packed(query.plan)
        functions = unpacked(text).functions
        return self.packed(as_it_runs(query.id, query.plan, checkpoint, functions))


OnFailure = Callable[[QueryVersion, Failure], None]
"""Called each time that a version which was started has ended with an error."""


def unheard(_version: QueryVersion, _failure: Failure) -> None:
    """Ignore a failure, for callers that ask the query itself."""


@dataclass(frozen=True)
class QueryDriver:
    """Starts and ends a query; Spark, or a test.

    ``prepare`` finds out what to start and may fail as long as Kafka is away. ``launch`` starts it.
    ``finish`` asks it to end between two batches and waits for that long: True if it has ended.
    ``bound`` sets how many records its next batches may have. ``build`` does ahead what a start
    takes long for. ``vet`` looks before each launch whether the checkpoint still fits to what
    Kafka has, and returns what will be launched. A query whose spec names a ``gate`` that is closed
    waits there before it looks at its source; ``close_gate`` returns whether there are gates.
    """

    prepare: Callable[[], QuerySpec]
    launch: Callable[[QuerySpec], StreamingQuery]
    finish: Callable[[StreamingQuery, float], bool]
    bound: Callable[[StreamingQuery, int], None] = lambda _query, _records: None
    build: Callable[[QuerySpec], None] = lambda _spec: None
    vet: Callable[[QuerySpec], QuerySpec] = lambda spec: spec
    close_gate: Callable[[str], bool] = lambda _gate: False
    open_gate: Callable[[str], None] = lambda _gate: None
