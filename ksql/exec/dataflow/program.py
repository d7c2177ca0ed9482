"""The running form of a plan: what each step does with a batch.

Spark, a push query or the memory hosts it. A program without stages turns a batch into its results
at once. One with stages has an ingest (decode, filter, project, key; per input partition) and
stateful stages, each fed by an exchange over buckets. The last one gives the results. Results are
encoded records for the sink topic, or rows for a client.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ksql.core import Headers, Row
from ksql.core.types import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.exec.dataflow.moved_records import MovedRecords
    from ksql.exec.dataflow.partitioning.placement import KeyedBuckets
    from ksql.exec.dataflow.timestamps import FutureTimestamps
    from ksql.exec.operators.base import LogError, Record, Store
    from ksql.exec.operators.order import SequenceKeys
    from ksql.sql.plan import Placement


Out = TypeVar("Out")
Out_co = TypeVar("Out_co", covariant=True)


class RawBatch(NamedTuple):
    """Kafka records, column by column; ``headers`` is None if no record of the batch has any."""

    topics: Sequence[str]
    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None] | None = None


class Ingest(Protocol):
    """The ingest of one task: batches in, records for the stages out."""

    def add(self, batch: RawBatch, log: LogError) -> Iterable[Record]:
        """Return the records that follow from this batch already."""

    def finish(self) -> Iterable[Record]:
        """Return the records held back until the end of the task (combined aggregates)."""


class Program(Protocol[Out_co]):
    """A compiled plan, thread-safe.

    It is built once per process and plan text (``load``) and used by many tasks.
    """

    query_id: str
    topics: tuple[str, ...]  # the topics to subscribe to
    stages: int  # how many stateful stages
    sink_topic: str | None  # None for transient queries
    # how many bytes at the end of written keys do not count for their partition; None: all count,
    # and the results of one task have one partition or few, so that Kafka's client may place each
    window_bytes: int | None
    changes: frozenset[int]  # the ports with a table's changes for the groups of an aggregate
    combined_windows: bool  # whether some records of the ingest stand for several, see panes
    laned: bool  # whether records are exchanged by lanes, each with a stream time of its own
    placement: Placement  # how results get to the partitions of their topic in order

    def straight(self, batch: RawBatch, log: LogError) -> Iterable[Out_co]:
        """Return the results of a batch, of a program without stages."""

    def straight_moved(
        self, batch: RawBatch, sequence_keys: SequenceKeys, log: LogError
    ) -> MovedRecords:
        """Return the same for results that are ``moved``; ``sequence_keys`` are the task's."""

    def ingest(self, ahead: FutureTimestamps | None = None) -> Ingest:
        """Return a fresh ingest for one task, of a program with stages.

        ``ahead`` is shown the times of the streams' records that move stream time.
        """

    def step(
        self, stage: int, records: Sequence[Record], store: Store, log: LogError
    ) -> Iterable[Record]:
        """Return a stage before the last one: records for later stages.

        ``records`` are those of one bucket and micro-batch, in no order: the program restores it,
        and takes those of each lane by themselves.
        """

    def last_step(self, records: Sequence[Record], store: Store, log: LogError) -> Iterable[Out_co]:
        """Return the last stage: the results; ``records`` as in ``step``."""

    def last_step_moved(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> MovedRecords:
        """Return the same for results that are ``moved``."""

    def backfilled(
        self, first_added: int, kept: Store, built: Store, log: LogError
    ) -> Sequence[Out_co]:
        """Put two states of the last stage together in ``built``, see ``operators.backfill``.

        Returns the results of all groups that it has then.
        """

    def backfilled_moved(
        self, first_added: int, kept: Store, built: Store, log: LogError
    ) -> MovedRecords:
        """Return the same for results that are ``moved``."""

    def buckets_of(self, count: int) -> KeyedBuckets | None:
        """Return what finds the bucket of a key among so many; None where lanes or checksums do."""


def through(
    program: Program[Out], batch: RawBatch, stores: Sequence[Store], log: LogError
) -> Iterable[Out]:
    """Return the results of a batch in this process, with a store for each stage."""
    if not stores:
        return program.straight(batch, log)
    ingest = program.ingest()
    records = [*ingest.add(batch, log), *ingest.finish()]
    for stage, store in enumerate(stores[:-1]):
        records = list(program.step(stage, records, store, log)) if records else []
    return program.last_step(records, stores[-1], log) if records else ()


Result = tuple[Row | None, Row | None, int, Headers | None, Bounds | None]
"""A result: key columns, value columns, time, headers, bounds of the window.

No value columns at all (None) is a deletion.
"""


class Results(NamedTuple):
    """Results column by column; no headers or no windows' bounds at all: None."""

    keys: Sequence[Row | None]
    values: Sequence[Row | None]
    times: Sequence[int]
    headers: Sequence[Headers | None] | None
    bounds: Sequence[Bounds | None] | None

    @classmethod
    def of(cls, results: Sequence[Result]) -> Results:
        """Return the columns of single results."""
        if not results:
            return cls((), (), (), None, None)
        return cls(*zip(*results, strict=True))

    def each(self) -> list[Result]:
        """Return the single results."""
        nothing = repeat(None)
        return list(
            zip(  # noqa: B905 - constants repeat without end
                self.keys, self.values, self.times, self.headers or nothing, self.bounds or nothing
            )
        )
