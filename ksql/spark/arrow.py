"""Arrow batches of the Kafka source as the columns that a program takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.dataflow.program import RawBatch

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

    from ksql.processors.base import Headers

SOURCE_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp) AS timestamp",
    "key",
    "value",
    "headers",
)
"""What is selected from the Kafka source, always and in this order (SQL expressions)."""


def raw_batch(batch: RecordBatch) -> RawBatch:
    """The Kafka records of an Arrow batch."""
    topics, partitions, offsets, timestamps, keys, values, headers = batch.columns
    return RawBatch(
        topics.to_pylist(),
        partitions.to_pylist(),
        offsets.to_pylist(),
        timestamps.to_pylist(),
        keys.to_pylist(),
        values.to_pylist(),
        _headers(headers),
    )


def _headers(column: Array) -> list[Headers | None] | None:
    if column.null_count == len(column):
        return None
    return [
        None if entry is None else [(item["key"], item["value"]) for item in entry]
        for entry in column.to_pylist()
    ]
