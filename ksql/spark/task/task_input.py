"""The records of a task: as Spark has read them, or read here from the ranges that it names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ksql.core.records import LATEST_MS
from ksql.exec.dataflow.program import RawBatch
from ksql.kafka.ranges import Range, range_reader
from ksql.spark.query.failures import RecordTooLate
from ksql.spark.task.arrow import raw_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyarrow import RecordBatch

    from ksql.kafka.ranges import Block
    from ksql.spark.task.task_environment import TaskEnvironment
    from ksql.spark.task.tasklog import TaskLog


class InputPortion(NamedTuple):
    """A part of a task's records, and how to find out the bytes of their keys and values."""

    raw: RawBatch
    size: Callable[[], int]


def portions(
    ship: TaskEnvironment, rows: Iterable[RecordBatch], log: TaskLog
) -> Iterator[InputPortion]:
    """Yield the records that a task of the query works on.

    Raises: RecordsGone, ReadFailed, RecordTooLate.
    """
    if ship.reader is None:
        for batch in rows:
            yield InputPortion(raw_batch(batch), partial(_arrow_bytes, batch))
        return
    reader = range_reader(ship.reader)
    note = partial(log.note, "source")
    for batch in rows:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            span = Range(*row)
            for block in reader.read(span, note, all_records=ship.all_records):
                raw = _raw(span, block)
                yield InputPortion(raw, partial(_bytes, raw))


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
