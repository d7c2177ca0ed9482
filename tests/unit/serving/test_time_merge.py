from __future__ import annotations

import random

from ksql.core.records import RawRecord
from ksql.serving.push import TimeMerge

A, B, C = ("a", 0), ("a", 1), ("b", 0)


def record(place, offset, time):
    topic, partition = place
    return RawRecord(topic, partition, offset, time, None, b"x", [])


def times(records):
    return [record.timestamp for record in records]


def test_a_record_waits_for_those_of_partitions_that_are_behind():
    merging = TimeMerge({A: 2, C: 2})
    early = [record(A, 0, 10), record(A, 1, 40)]
    assert merging.ready(early, {A: 2, C: 0}) == []
    assert times(merging.ready([record(C, 0, 20)], {A: 2, C: 1})) == [10, 20]
    assert times(merging.ready([record(C, 1, 50)], {A: 2, C: 2})) == [40, 50]


def test_in_the_present_records_are_taken_as_they_arrive():
    merging = TimeMerge({A: 1, C: 0})
    assert times(merging.ready([record(A, 0, 90)], {A: 1, C: 0})) == [90]
    late = [record(C, 0, 20)]
    assert merging.ready(late, {A: 1, C: 1}) is late


def test_an_end_without_a_record_is_reached_by_its_position():
    merging = TimeMerge({A: 1, C: 7})
    assert merging.ready([record(A, 0, 5)], {A: 1, C: 0}) == []
    assert times(merging.ready([], {A: 1, C: 7})) == [5]


def test_queued_records_are_bounded_and_awaited_ones_are_read():
    merging = TimeMerge({A: 100, B: 100, C: 100}, room=10_000)
    positions = dict.fromkeys((A, B, C), 0)
    read = 0
    while A not in merging.enough:
        merging.ready([record(A, read, read)], positions)
        read += 1
    assert 10_000 / 500 < read < 10_000 / 300
    assert set(merging.enough) == {A}
    merging.ready([record(B, 0, 200)], positions)
    assert set(merging.enough) == {A, B}
    assert len(merging.ready([record(C, 0, read // 4)], positions)) == read // 4 + 2
    assert set(merging.enough) == {A, B}  # until half of it is taken
    assert merging.ready([record(C, 1, read)], positions)[-1].timestamp == read - 1
    assert not merging.enough


def test_the_sizes_of_keys_values_and_headers_count():
    for large in (
        {"key": b"x" * 9_000},
        {"value": b"x" * 9_000},
        {"headers": [("x" * 4_500, b"x" * 4_500)]},
        {"headers": [("x" * 9_000, None)]},
    ):
        merging = TimeMerge({A: 9, C: 9}, room=9_000)
        merging.ready([record(A, 0, 1)], {A: 0, C: 0})
        assert not merging.enough
        merging.ready([record(A, 1, 1)._replace(**large)], {A: 0, C: 0})
        assert set(merging.enough) == {A}


def test_the_order_does_not_depend_on_what_arrives_first():
    chance = random.Random(5)
    queues = {}
    for place in (A, B, C):
        stamps = sorted(chance.sample(range(1_000), 60))
        queues[place] = [record(place, offset, time) for offset, time in enumerate(stamps)]
    expected = sorted((r for queue in queues.values() for r in queue), key=lambda r: r.timestamp)
    for _ in range(50):
        left = {place: list(queue) for place, queue in queues.items()}
        merging = TimeMerge(dict.fromkeys(left, 60))
        records: list[RawRecord] = []
        positions = dict.fromkeys(left, 0)
        while any(left.values()):
            place = chance.choice([place for place, queue in left.items() if queue])
            count = chance.randrange(1, 20)
            some, left[place] = left[place][:count], left[place][count:]
            positions[place] += len(some)
            records += merging.ready(some, positions)
        assert times(records) == times(expected)
