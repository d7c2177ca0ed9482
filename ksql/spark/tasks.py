"""The Python tasks without state: the whole of a stateless query, and the ingest of the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext

from ksql.dataflow.ahead import Ahead, Warned
from ksql.spark.arrow import raw_batch
from ksql.spark.chunk import ChunkWriter
from ksql.spark.cycles import no_cycle_search
from ksql.spark.sink import last_words, open_sink, write_log
from ksql.spark.tasklog import TaskLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyarrow import RecordBatch

    from ksql.dataflow.program import RawBatch
    from ksql.spark.shipment import Shipment
    from ksql.spark.sink import TaskSink

TALLY_SCHEMA = "produced BIGINT, errors BIGINT"
"""What the last stage tells Spark of a task: counts, no records."""

EXCHANGE_SCHEMA = "B INT, ERRORS INT, BLOB BINARY"
"""What goes to a stateful stage: a bucket's label, errors on the way here, a chunk of records."""

INGEST_SCHEMA = f"{EXCHANGE_SCHEMA}, AHEAD BIGINT, BYTES BIGINT"
"""The same with the latest time of records far ahead of the clock, in the row that tells errors,
and the bytes of keys and values that were read since the row before."""

HELD_SCHEMA = "BUCKET INT, ENTRIES BIGINT, SIZE BIGINT"
"""What a stage adds to one row of each call: the bucket's label, what its state holds now."""

_HEAVY_BYTES: Final = 32 << 20
_WARNED: Final = Warned()


class StatelessTask:
    """Decode, filter, project, encode and produce, all in one task."""

    def __init__(self, ship: Shipment) -> None:
        self.ship = ship

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        program = self.ship.load()
        log = TaskLog()
        sink: TaskSink | None = None
        with no_cycle_search(), last_words(self.ship):
            for batch in batches:
                raw = raw_batch(batch)
                if sink is None:
                    sink = open_sink(self.ship, program.sink_topic, log, self._task(raw))
                sink.write(program.straight(raw, log))
            if sink is None:
                return
            sink.close()
        yield pa.RecordBatch.from_pydict({"produced": [sink.written], "errors": [log.untold()]})

    def _task(self, raw: RawBatch) -> str:
        """A task reads one partition: that names it, whichever its number is in this run."""
        return f"{self.ship.topics.index(raw.topics[0])}-{raw.partitions[0]}"


class IngestTask:
    """Decode, filter, key and, where the plan allows it, combine; records leave by bucket."""

    def __init__(self, ship: Shipment, clock: Callable[[], float] = time.time) -> None:
        self.ship = ship
        self.clock = clock
        self._read_bytes = 0

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        now_ms = int(self.clock() * 1000)
        ahead = Ahead(now_ms + self.ship.ahead_ms) if self.ship.ahead_ms else None
        ingest = self.ship.load().ingest(ahead)
        context = TaskContext.get()
        writer = ChunkWriter(len(self.ship.buckets), context.partitionId() if context else 0)
        log = TaskLog()
        self._read_bytes = 0
        with no_cycle_search(), last_words(self.ship):
            for batch in batches:
                self._read_bytes += batch["key"].nbytes + batch["value"].nbytes
                yield from map(self._row, writer.add(ingest.add(raw_batch(batch), log)))
                if batch.nbytes > _HEAVY_BYTES:  # so many of them in a chunk would be too many
                    yield from map(self._row, writer.finish())
            yield from map(self._row, writer.add(ingest.finish()))
            yield from map(self._row, writer.finish())
        if ahead is not None and _WARNED.due(self.ship.query_id, ahead, now_ms):
            log.note("source", ahead.text())
        errors, latest = log.untold(), ahead.latest_ms if ahead is not None else None
        if errors or latest is not None:
            write_log(self.ship, log)
            yield ingest_row(self.ship.buckets[0], b"", errors, latest)

    def _row(self, chunk: tuple[int, bytes]) -> RecordBatch:
        read, self._read_bytes = self._read_bytes, 0
        return ingest_row(self.ship.buckets[chunk[0]], chunk[1], read=read)


def ingest_row(
    label: int, chunk: bytes, errors: int = 0, ahead_ms: int | None = None, read: int = 0
) -> RecordBatch:
    """Return one row on its way to the exchange."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([label], pa.int32()),
            pa.array([errors], pa.int32()),
            pa.array([chunk], pa.binary()),
            pa.array([ahead_ms], pa.int64()),
            pa.array([read], pa.int64()),
        ],
        ["B", "ERRORS", "BLOB", "AHEAD", "BYTES"],
    )
