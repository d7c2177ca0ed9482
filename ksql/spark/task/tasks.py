"""The Python tasks of a batch: stateless queries, ingest, sink, a backfill's take-over of state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext

from ksql.core import no_cycle_search
from ksql.exec.dataflow import FutureTimestamps, WarningsWritten
from ksql.exec.operators import SequenceKeys
from ksql.spark.task.chunk import ChunkWriter
from ksql.spark.task.sink import last_words, open_sink, write_log
from ksql.spark.task.sinkexchange import SinkChunkWriter, merged
from ksql.spark.task.task_input import portions
from ksql.spark.task.tasklog import TaskLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyarrow import RecordBatch

    from ksql.exec.dataflow import RawBatch
    from ksql.spark.task.sink import TaskSink
    from ksql.spark.task.task_environment import TaskEnvironment

TOTALS_SCHEMA = "produced BIGINT, errors BIGINT"
"""The last stage's report on a task: counts, no records."""

STATELESS_SCHEMA = f"{TOTALS_SCHEMA}, read BIGINT"
"""The same of a task that begins at the source; ``read`` is null if Spark counts what is read."""

EXCHANGE_SCHEMA = "B INT, ERRORS INT, BLOB BINARY"
"""What goes to a stateful stage: a bucket's label, errors on the way here, a chunk of records."""

INGEST_SCHEMA = f"{EXCHANGE_SCHEMA}, AHEAD BIGINT, BYTES BIGINT, READ BIGINT"
"""The same with the latest time of records far ahead of the clock, in the row that counts errors,
and the bytes of keys and values that were read since the row before, and the number of these
records; it is null if Spark counts them."""

HELD_SCHEMA = "BUCKET INT, ENTRIES BIGINT, SIZE BIGINT"
"""What a stage adds to one row of each call: the bucket's label, what its state holds now."""

LATE_SCHEMA = "LATE BIGINT, BEHIND BIGINT, TOPIC STRING, PART INT"
"""What it adds to that row, too: the number of late records; of the latest one, by how many
milliseconds it was, its topic and partition."""

CALL: Final = b"\0"
"""What calls a bucket without records; no chunk of records begins so."""

_HEAVY_BYTES: Final = 32 << 20
_WARNED: Final = WarningsWritten()


class StatelessTask:
    """Decode, filter, project, encode and produce, all in one task."""

    def __init__(self, environment: TaskEnvironment) -> None:
        self.environment = environment

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        program = self.environment.load()
        log = TaskLog()
        sink: TaskSink | None = None
        read = 0
        with no_cycle_search(program), last_words(self.environment):
            for raw, _ in portions(self.environment, batches, log):
                if sink is None:
                    sink = open_sink(
                        self.environment,
                        program.sink_topic,
                        log,
                        self._task(raw),
                        program.window_bytes,
                    )
                    if program.placement == "kept":
                        sink.kept = raw.partitions[0]
                sink.write(program.straight(raw, log))
                read += len(raw.offsets)
            if sink is not None:
                sink.close()
            else:
                write_log(self.environment, log)
        written = sink.written if sink is not None else 0
        yield pa.RecordBatch.from_pydict(
            {
                "produced": pa.array([written], pa.int64()),
                "errors": pa.array([log.untold()], pa.int64()),
                "read": pa.array(
                    [read if self.environment.reader is not None else None], pa.int64()
                ),
            }
        )

    def _task(self, raw: RawBatch) -> str:
        """Name a task by the one partition that it reads, whichever its number is in this run."""
        return f"{self.environment.topics.index(raw.topics[0])}-{raw.partitions[0]}"


class IngestTask:
    """Decode, filter, key and, where the plan allows it, combine; records leave by bucket."""

    def __init__(
        self, environment: TaskEnvironment, clock: Callable[[], float] = time.time
    ) -> None:
        self.environment = environment
        self.clock = clock

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        now_ms = int(self.clock() * 1000)
        ahead = (
            FutureTimestamps(now_ms + self.environment.ahead_ms)
            if self.environment.ahead_ms
            else None
        )
        program = self.environment.load()
        ingest, context = program.ingest(ahead), TaskContext.get()
        sender = context.partitionId() if context else 0
        buckets = len(self.environment.buckets)
        writer = ChunkWriter(
            buckets,
            sender,
            laned=program.laned,
            combined=program.combined_windows,
            keyed=program.buckets_of(buckets),
        )
        log, read = TaskLog(), _Read(counted=self.environment.reader is not None)
        unsent = 0
        with no_cycle_search(program), last_words(self.environment):
            for raw, size in portions(self.environment, batches, log):
                weight = size()
                read.add(len(raw.offsets), weight)
                for chunk in writer.add(ingest.add(raw, log)):
                    yield _chunk_row(self.environment, chunk, read)
                unsent += weight
                if unsent > _HEAVY_BYTES:  # so many of them in a chunk would be too many
                    for chunk in writer.finish():
                        yield _chunk_row(self.environment, chunk, read)
                    unsent = 0
            for chunk in (*writer.add(ingest.finish()), *writer.finish()):
                yield _chunk_row(self.environment, chunk, read)
        if ahead is not None and _WARNED.due(self.environment.application_id, ahead, now_ms):
            log.note("source", ahead.text())
        errors, latest = log.untold(), ahead.latest_ms if ahead is not None else None
        if errors or log.notes or latest is not None or read.open:
            write_log(self.environment, log)
            yield ingest_row(self.environment.buckets[0], b"", errors, latest, read.take())


class BackfillTask:
    """Calls every bucket once, in a batch without records: it takes over its part of kept state."""

    def __init__(self, environment: TaskEnvironment) -> None:
        self.environment = environment

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task, for the one row that such a batch has."""
        for batch in batches:
            if batch.num_rows:
                yield from (ingest_row(label, CALL) for label in self.environment.buckets)


class StatelessMovedTask:
    """The same up to the encoded results; they leave by the bucket of their partition."""

    def __init__(self, environment: TaskEnvironment) -> None:
        self.environment = environment

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        environment, program, context = self.environment, self.environment.load(), TaskContext.get()
        sender = context.partitionId() if context else 0
        window_bytes = program.window_bytes or 0
        writer = SinkChunkWriter(
            len(environment.buckets), sender, environment.partitions, window_bytes
        )
        log, read, sequence_keys = (
            TaskLog(),
            _Read(counted=environment.reader is not None),
            SequenceKeys(),
        )
        with no_cycle_search(program), last_words(environment):
            for raw, size in portions(environment, batches, log):
                read.add(len(raw.offsets), size())
                for chunk in writer.add(program.straight_moved(raw, sequence_keys, log)):
                    yield _chunk_row(environment, chunk, read)
            for chunk in writer.finish():
                yield _chunk_row(environment, chunk, read)
        errors = log.untold()
        if errors or log.notes or read.open:
            write_log(environment, log)
            yield ingest_row(environment.buckets[0], b"", errors, None, read.take())


def _chunk_row(environment: TaskEnvironment, chunk: tuple[int, bytes], read: _Read) -> RecordBatch:
    return ingest_row(environment.buckets[chunk[0]], chunk[1], read=read.take())


class SinkTask:
    """Merge the results of a bucket's partitions, and produce them."""

    def __init__(self, environment: TaskEnvironment) -> None:
        self.environment = environment

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        program, log, written = self.environment.load(), TaskLog(), 0
        chunks: dict[int, list[bytes]] = {}
        for batch in batches:
            for label, chunk in zip(batch["B"].to_pylist(), batch["BLOB"].to_pylist(), strict=True):
                if chunk:
                    chunks.setdefault(label, []).append(chunk)
        with no_cycle_search(program), last_words(self.environment):
            for label in sorted(chunks):
                sink = open_sink(self.environment, program.sink_topic, log, f"sink-{label}")
                sink.write_placed(merged(chunks[label]))
                sink.close()
                written += sink.written
        yield pa.RecordBatch.from_pydict(
            {
                "produced": pa.array([written], pa.int64()),
                "errors": pa.array([log.untold()], pa.int64()),
            }
        )


class _Read:
    """The records that a task has read and no row counts yet; at least one row of a task does.

    Their number is None if it is not to be ``counted``.
    """

    def __init__(self, *, counted: bool) -> None:
        self.open = counted
        self._counted = counted
        self._count = self._bytes = 0

    def add(self, count: int, bytes_: int) -> None:
        self._count += count
        self._bytes += bytes_
        self.open = self._counted

    def take(self) -> tuple[int, int | None]:
        taken = self._bytes, self._count if self._counted else None
        self._count, self._bytes, self.open = 0, 0, False
        return taken


def ingest_row(
    label: int,
    chunk: bytes,
    errors: int = 0,
    ahead_ms: int | None = None,
    read: tuple[int, int | None] = (0, None),
) -> RecordBatch:
    """Return one row on its way to the exchange."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([label], pa.int32()),
            pa.array([errors], pa.int32()),
            pa.array([chunk], pa.binary()),
            pa.array([ahead_ms], pa.int64()),
            *(pa.array([number], pa.int64()) for number in read),
        ],
        ["B", "ERRORS", "BLOB", "AHEAD", "BYTES", "READ"],
    )
