"""The records of a task, from Spark or read here by ranges; Arrow batches as columns."""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import orjson

from ksql.core import LATEST_MS
from ksql.exec.dataflow import RawBatch
from ksql.kafka import Range, range_reader
from ksql.spark.query.failures import RecordTooLate
from ksql.spark.task.writers import joined, merged, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyarrow import Array, RecordBatch

    from ksql.core import Headers
    from ksql.kafka import Block
    from ksql.spark.task.task_environment import TaskEnvironment
    from ksql.spark.task.tasklog import TaskLog


class InputPortion(NamedTuple):
    """A part of a task's records, and how to find out the bytes of their keys and values."""

    raw: RawBatch
    size: Callable[[], int]


def portions(
    environment: TaskEnvironment, rows: Iterable[RecordBatch], log: TaskLog
) -> Iterator[InputPortion]:
    """Yield the records that a task of the query works on.

    Raises: RecordsGone, ReadFailed, RecordTooLate.
    """
    if environment.reader is None:
        for batch in rows:
            yield InputPortion(raw_batch(batch), partial(_arrow_bytes, batch))
        return
    reader = range_reader(environment.reader)
    note = partial(log.note, "source")

    def read(span: Range) -> Iterator[RawBatch]:
        for block in reader.read(span, note, all_records=environment.all_records):
            yield _raw(span, block)

    for raw in _in_order(_ranges(rows), read):
        yield InputPortion(raw, partial(_bytes, raw))


def _ranges(rows: Iterable[RecordBatch]) -> Iterator[Range]:
    for batch in rows:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Range(*row)


def _in_order(
    ranges: Iterable[Range], read: Callable[[Range], Iterator[RawBatch]]
) -> Iterator[RawBatch]:
    """Yield the records of all ranges; those of one partition are merged by their writers.

    The ranges of a partition follow one another, so that it is read once.
    """
    for _, group in groupby(ranges, attrgetter("place")):
        first, *others = group
        if not others:
            yield from read(first)
            continue
        whole = joined(list(read(first._replace(end=others[-1].end))))
        yield from merged([(each.writer, within(whole, each)) for each in (first, *others)])


def _raw(span: Range, block: Block) -> RawBatch:
    """Return the records of a block, with times that Spark's own source could hand on as well."""
    topic, partition, times = span.topic, span.partition, block.timestamps
    if max(times) > LATEST_MS or min(times) < -LATEST_MS:
        late = next(n for n, time in enumerate(times) if abs(time) > LATEST_MS)
        raise RecordTooLate(topic, str(partition), str(block.offsets[late]), str(times[late]))
    count = len(times)
    return RawBatch([topic] * count, [partition] * count, *block)


def _arrow_bytes(batch: RecordBatch) -> int:
    return int(batch["key"].nbytes + batch["value"].nbytes)


def _bytes(raw: RawBatch) -> int:
    return sum(map(len, filter(None, raw.values))) + sum(map(len, filter(None, raw.keys)))


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
