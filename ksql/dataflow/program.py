"""The running form of a plan: what each stage does with a batch.

Spark, a push query or the memory hosts it. A program has one
ingest step (decode, filter, project, key; per input partition) and zero or more stateful stages,
each fed by an exchange over buckets. The last step gives encoded records for the sink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.base.records import Headers, OutRecord
    from ksql.processors.base import LogError, Record, Store


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
    """The ingest step of one task: batches in, records for stage 0 out.

    If there is no stage, what comes out are outputs.
    """

    def add(self, batch: RawBatch, log: LogError) -> Sequence[Record] | Sequence[OutRecord]:
        """What follows from this batch already."""

    def finish(self) -> Sequence[Record]:
        """What was held back until the end of the task (combined aggregates); empty otherwise."""


class Program(Protocol):
    """A compiled plan, thread-safe.

    It is built once per process and plan text (``load``) and used by many tasks.
    """

    query_id: str
    topics: tuple[str, ...]  # the topics to subscribe to
    stages: int  # how many stateful stages
    sink_topic: str | None  # None for transient queries

    def ingest(self) -> Ingest:
        """A fresh ingest step for one task."""

    def step(
        self, stage: int, records: Sequence[Record], store: Store, log: LogError
    ) -> Iterable[Record] | Iterable[OutRecord]:
        """One bucket's records of one micro-batch, in no order yet (the step restores it)."""
