from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.base import Record
from ksql.exec.operators.order import SequenceKeys, in_order
from tests.unit.exec.operators.support import in_sequence


def at(topic, partition, offset, time, sequence_key=0):
    return Record(0, b"", (), time, topic, partition, offset, sequence_key=sequence_key)


def log_of(topic, partition, times):
    sequence_keys = SequenceKeys().of(0, [partition] * len(times), times)
    return [
        at(topic, partition, offset, time, sequence_key)
        for offset, (time, sequence_key) in enumerate(zip(times, sequence_keys, strict=True))
    ]


logs = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)), st.lists(st.integers(0, 9), max_size=5)
).map(
    lambda parts: [
        record
        for (topic, partition), times in parts.items()
        for record in log_of(topic, partition, times)
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


@given(logs, st.randoms())
def test_dropped_record_counts_for_the_order(records, rng):
    ordered = in_order(records)
    kept = {record for record in ordered if rng.random() < 0.5}
    shuffled = list(kept)
    rng.shuffle(shuffled)
    assert list(in_order(shuffled)) == [record for record in ordered if record in kept]


@given(logs, st.integers(0, 45), st.randoms())
def test_batches_may_be_cut_anywhere_in_the_order(records, place, rng):
    ordered = list(in_order(records))
    for piece in (ordered[:place], ordered[place:]):
        resequenced = in_sequence(piece)
        rng.shuffle(resequenced)
        assert [record[:9] for record in in_order(resequenced)] == [record[:9] for record in piece]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9))), st.integers(0, 20))
def test_turns_continue_from_call_to_call(records, place):
    partitions, times = [p for p, _ in records], [t for _, t in records]
    whole = list(SequenceKeys().of(0, partitions, times))
    sequence_keys = SequenceKeys()
    keys = list(sequence_keys.of(0, partitions[:place], times[:place]))
    keys += sequence_keys.of(0, partitions[place:], times[place:])
    assert keys == whole
    for n, (partition, _) in enumerate(records):
        assert whole[n] == max(t for p, t in records[: n + 1] if p == partition)


def test_ordered_partition_is_not_copied():
    records = [at(0, 0, offset, 9 - offset) for offset in range(5)]
    assert list(in_order(records)) == records
    random.Random(1).shuffle(records)
    assert [r.offset for r in in_order(records)] == [0, 1, 2, 3, 4]
    assert list(in_order([])) == []
