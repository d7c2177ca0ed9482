"""The facts about its query that a task needs: plain data, pickled with each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ksql.core.process import Lease
from ksql.exec.dataflow.load import load
from ksql.kafka.producers import NO_LIMITS, TopicLimits
from ksql.spark.task.kept_state import KeptState
from ksql.spark.task.launch_right import LaunchRight

if TYPE_CHECKING:
    from ksql.core import OutRecord
    from ksql.exec.dataflow import Program


class Loader(Protocol):
    """Makes a program of a stored plan; a function of a module, so that it can be pickled."""

    def __call__(self, text: str, /) -> Program[OutRecord]:
        """Return the program; made once per process and text."""


@dataclass(frozen=True, kw_only=True)
class TaskEnvironment:
    """The query's plan and its way out.

    Attributes:
        query_id: The persistent query's id.
        application_id: The query's name in Kafka, unique among all services of a cluster.
        plan_json: The plan; ``loader`` compiles it.
        topics: The source topics, in the order of their indices.
        buckets: Row labels of the exchanges; empty for a query that has none.
        producer: Kafka client configuration, as sorted pairs.
        partitions: Over how many of the sink's topic the results are divided; 0: not looked at.
        fitting: More of it for writing to the sink: what its topic's limits ask for.
        limits: The records that the sink's topic takes.
        sink_id: Kafka's own id of the sink's topic at the launch; empty: not known.
        exactly_once: One Kafka transaction per task instead of at-least-once delivery.
        log_topic: Where processing errors go; None drops them.
        log_rows: Whether the log shows the rows that failed.
        strict: Whether a record that the broker refuses ends the query.
        ahead_ms: How far ahead of the clock a record may be without a warning; 0: however far.
        loader: Turns the plan into a program.
        lease: The right of the server to write; None: it is not asked for.
        right: The right of the launch to write; None: it is not asked for.
        reader: Kafka client configuration, as sorted pairs, if the tasks read the records; None:
            Spark reads them.
        kept: The state that the last stage takes over, in a batch that has no records.
        all_records: Whether records that were to be read and are gone end the query.
    """

    query_id: str
    application_id: str
    plan_json: str
    topics: tuple[str, ...]
    producer: tuple[tuple[str, str], ...]
    buckets: tuple[int, ...] = ()
    partitions: int = 0
    fitting: tuple[tuple[str, str], ...] = ()
    limits: TopicLimits = NO_LIMITS
    sink_id: str = ""
    exactly_once: bool = False
    log_topic: str | None = None
    log_rows: bool = False
    strict: bool = True
    ahead_ms: int = 0
    loader: Loader = load
    lease: Lease | None = None
    right: LaunchRight | None = None
    reader: tuple[tuple[str, str], ...] | None = None
    all_records: bool = True
    kept: KeptState | None = None

    def await_lease(self) -> None:
        """Return while this task may write; wait while it is open whether its server leads.

        Raises: NotLeader, LaunchOver.
        """
        if self.lease is not None:
            self.lease.await_valid()
        if self.right is not None:
            self.right.check()

    @property
    def sink_producer(self) -> dict[str, str]:
        """Client configuration for writing to the sink; what users ask for wins."""
        return dict(self.fitting) | dict(self.producer)

    def load(self) -> Program[OutRecord]:
        """Return the compiled program; compiling happens once per process and plan."""
        return self.loader(self.plan_json)
