"""The Python stages of a query that need no state: the whole stateless road, and the ingest before an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.spark.arrow import raw_batch
from ksql.spark.shipment import ErrorLog
from ksql.spark.sink import TaskSink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import RecordBatch

    from ksql.spark.shipment import Shipment

TALLY_SCHEMA = "produced BIGINT, errors BIGINT"
"""What the last stage tells Spark of a task: counts, no records."""


def tally(produced: int, errors: int) -> RecordBatch:
    """One row of the last stage's output."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"produced": [produced], "errors": [errors]})


class StatelessRoad:
    """Decode, filter, project, encode and produce, all in one task."""

    def __init__(self, ship: Shipment) -> None:
        self.ship = ship

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Run one task."""
        program = self.ship.load()
        ingest = program.ingest()
        log = ErrorLog()
        with TaskSink(self.ship, program.sink_topic, log) as sink:
            for batch in batches:
                sink.write(ingest.add(raw_batch(batch), log))  # type: ignore[arg-type] # no stages
            sink.write(ingest.finish())  # type: ignore[arg-type] # no stages
        yield tally(sink.written, len(log.entries))
