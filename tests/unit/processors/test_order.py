from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ksql.processors.base import Record
from ksql.processors.order import in_order


def at(topic, partition, offset, time):
    return Record(0, b"", (), time, topic, partition, offset)


logs = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)), st.lists(st.integers(0, 9), max_size=5)
).map(
    lambda parts: [
        at(topic, partition, offset, time)
        for (topic, partition), times in parts.items()
        for offset, time in enumerate(times)
    ]
)


@given(logs, st.randoms())
def test_any_shuffle_is_put_into_one_order(records, rng):
    expected = list(in_order(records))
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert list(in_order(shuffled)) == expected
    assert sorted(expected) == sorted(records)


@given(logs)
def test_each_partition_keeps_its_order(records):
    ordered = list(in_order(records))
    for place in {(r.topic, r.partition) for r in records}:
        offsets = [r.offset for r in ordered if (r.topic, r.partition) == place]
        assert offsets == sorted(offsets)


@given(logs)
def test_the_lowest_head_goes_first(records):
    queues: dict[Any, Any] = {}
    for record in sorted(records, key=lambda r: r.offset):
        queues.setdefault((record.topic, record.partition), []).append(record)
    for record in in_order(records):
        heads = [(queue[0].timestamp, place) for place, queue in queues.items() if queue]
        assert (record.timestamp, (record.topic, record.partition)) == min(heads)
        assert queues[record.topic, record.partition].pop(0) == record


def test_one_partition_is_not_copied_when_it_is_in_order():
    records = [at(0, 0, offset, 9 - offset) for offset in range(5)]
    assert list(in_order(records)) == records
    random.Random(1).shuffle(records)
    assert [r.offset for r in in_order(records)] == [0, 1, 2, 3, 4]
    assert list(in_order([])) == []
