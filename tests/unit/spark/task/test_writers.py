"""The records that several queries wrote into one partition, by time and in each query's order."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.dataflow import RawBatch
from ksql.kafka import Range
from ksql.spark.task.writers import ANY, RECORDS, merged, within

NAMED = 1, 2, 3


def part(start, times, headers=None):
    count = len(times)
    offsets = list(range(start, start + count))
    return RawBatch(
        ["t"] * count, [0] * count, offsets, list(times), [b"k"] * count, [b"v"] * count, headers
    )


def parts_of(*runs):
    parts, at = [], 0
    for writer, times in runs:
        parts.append((writer, part(at, times)))
        at += len(times)
    return parts


def taken(parts):
    return [pair for raw in merged(parts) for pair in zip(raw.offsets, raw.timestamps, strict=True)]


def times(*runs):
    return [time for _, time in taken(parts_of(*runs))]


def test_two_that_went_through_the_same_time():
    assert times((1, [1, 3, 5]), (2, [2, 4, 6])) == [1, 2, 3, 4, 5, 6]


def test_a_late_record_comes_right_after_the_one_before_it():
    assert times((1, [1, 9, 3, 10]), (2, [2, 9, 11])) == [1, 2, 9, 3, 9, 10, 11]


def test_a_writer_goes_on_where_it_was():
    assert times((1, [1, 5]), (2, [2, 6]), (1, [4, 7])) == [1, 2, 5, 4, 6, 7]


def test_nothing_passes_what_may_be_of_each():
    assert times((1, [5]), (ANY, [3]), (2, [1, 6]), (1, [2])) == [5, 3, 1, 2, 6]


def test_a_part_without_records_parts_nothing():
    assert times((1, [1, 3]), (ANY, []), (2, [2])) == [1, 2, 3]


def test_headers_stay_with_their_records():
    parts = [(1, part(0, [1, 3], [[("a", b"1")], None])), (2, part(2, [2]))]
    (raw,) = merged(parts)
    assert raw.offsets == [0, 2, 1]
    assert raw.headers == [[("a", b"1")], None, None]


def test_the_records_of_a_range_are_those_of_its_offsets():
    raw = part(3, [1, 2, 3, 4])._replace(offsets=[3, 5, 6, 9])
    assert within(raw, Range("t", 0, 4, 9)).offsets == [5, 6]
    assert within(raw, Range("t", 0, 9, 12)).timestamps == [4]
    assert within(raw, Range("t", 0, 7, 9)).offsets == []


def test_many_come_in_several_batches():
    parts = parts_of((1, range(0, 2 * RECORDS, 2)), (2, range(1, 100, 2)))
    sizes = [len(raw.offsets) for raw in merged(parts)]
    assert sizes == [RECORDS, 50]


@given(
    st.lists(
        st.tuples(st.sampled_from([ANY, *NAMED]), st.lists(st.integers(0, 20), max_size=5)),
        min_size=1,
        max_size=8,
    )
)
def test_each_writer_keeps_its_order_and_is_as_far_behind_as_it_was(runs):
    parts = parts_of(*runs)
    writer_of = {at: writer for writer, raw in parts for at in raw.offsets}
    order = [offset for offset, _ in taken(parts)]
    assert sorted(order) == sorted(writer_of)
    place = {offset: n for n, offset in enumerate(order)}
    for (one, writer), (other, other_writer) in combinations(sorted(writer_of.items()), 2):
        if writer == other_writer or ANY in (writer, other_writer):
            assert place[one] < place[other]
