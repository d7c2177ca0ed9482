"""The Python stages of a query that need no state: the whole stateless road, and the ingest before an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.spark.arrow import raw_batch
from ksql.spark.chunk import ChunkWriter
from ksql.spark.shipment import ErrorLog
from ksql.spark.sink import TaskSink

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyarrow import RecordBatch

    from ksql.processors.base import Record
    from ksql.spark.shipment import Shipment

TALLY_SCHEMA = "produced BIGINT, errors BIGINT"
"""What the last stage tells Spark of a task: counts, no records."""

EXCHANGE_SCHEMA = "B INT, ERRORS INT, BLOB BINARY"
"""What goes to a stateful stage: a bucket's label, errors on the way here, a chunk of records."""


class StatelessRoad:
    """Decode, filter, project, encode and produce, all in one task."""

    def __init__(self, ship: Shipment) -> None:
        self.ship = ship

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        import pyarrow as pa

        program = self.ship.load()
        ingest = program.ingest()
        log = ErrorLog()
        sink = TaskSink(self.ship, program.sink_topic, log)
        for batch in batches:
            sink.write(ingest.add(raw_batch(batch), log))  # type: ignore[arg-type] # no stages
        sink.write(ingest.finish())  # type: ignore[arg-type] # no stages
        sink.close()
        yield pa.RecordBatch.from_pydict(
            {"produced": [sink.written], "errors": [len(log.entries)]}
        )


class IngestStage:
    """Decode, filter, key and, where the plan allows it, combine; records leave by bucket."""

    def __init__(self, ship: Shipment) -> None:
        self.ship = ship

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        from pyspark import TaskContext

        ingest = self.ship.load().ingest()
        context = TaskContext.get()
        writer = ChunkWriter(len(self.ship.buckets), context.partitionId() if context else 0)
        log = ErrorLog()
        for batch in batches:
            records: Iterable[Record] = ingest.add(raw_batch(batch), log)  # type: ignore[assignment]
            yield from map(self._row, writer.add(records))
        yield from map(self._row, writer.add(ingest.finish()))
        yield from map(self._row, writer.finish())
        if log.entries:
            yield exchange_row(self.ship.buckets[0], b"", len(log.entries))

    def _row(self, chunk: tuple[int, bytes]) -> RecordBatch:
        return exchange_row(self.ship.buckets[chunk[0]], chunk[1])


def exchange_row(label: int, chunk: bytes, errors: int = 0) -> RecordBatch:
    """One row of the exchange."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [
            pa.array([label], pa.int32()),
            pa.array([errors], pa.int32()),
            pa.array([chunk], pa.binary()),
        ],
        ["B", "ERRORS", "BLOB"],
    )
