"""The records of a task: as Spark has read them, or read here from the ranges that it names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ksql.base.records import LATEST_MS
from ksql.dataflow.program import RawBatch
from ksql.kafka.ranges import Range, range_reader
from ksql.spark.arrow import raw_batch
from ksql.spark.failures import RecordTooLate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyarrow import RecordBatch

    from ksql.kafka.ranges import Block
    from ksql.spark.shipment import Shipment
    from ksql.spark.tasklog import TaskLog


class Portion(NamedTuple):
    """A part of a task's records, and how to find out the bytes of their keys and values."""

    raw: RawBatch
    size: Callable[[], int]


def portions(ship: Shipment, rows: Iterable[RecordBatch], log: TaskLog) -> Iterator[Portion]:
    """Yield the records that a task of the query works on.

    Raises: RecordsGone, ReadFailed, RecordTooLate.
    """
    if ship.reader is None:
        for batch in rows:
            yield Portion(raw_batch(batch), partial(_arrow_bytes, batch))
        return
    reader = range_reader(ship.reader)
    note = partial(log.note, "source")
    for batch in rows:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            span = Range(*row)
            for block in reader.read(span, note, all_records=ship.all_records):
                raw = _raw(span, block)
                yield Portion(raw, partial(_bytes, raw))


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
