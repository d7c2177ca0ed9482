"""Arrow batches of the Kafka source as the columns that a program takes."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

import orjson

from ksql.exec.dataflow.program import RawBatch

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

    from ksql.core.records import Headers

SOURCE_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp) AS timestamp",
    "key",
    "value",
    # as an array of structs they would cost more than all the rest, even when there are none
    "if(headers is null, null, to_json(headers)) AS headers",
)
"""What is selected from the Kafka source, always and in this order (SQL expressions)."""


def raw_batch(batch: RecordBatch) -> RawBatch:
    """Return the Kafka records of an Arrow batch."""
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
    return [None if text is None else _parse(text) for text in column.to_pylist()]


def _parse(text: str) -> Headers:
    return [
        (item["key"], None if (value := item.get("value")) is None else b64decode(value))
        for item in orjson.loads(text)
    ]
