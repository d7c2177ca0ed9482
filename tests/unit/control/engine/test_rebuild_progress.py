"""The progress of a rebuild, in records, percent and seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.control.engine.rebuild_progress import (
    percent,
    records_read,
    records_to_read,
    seconds_behind,
)
from ksql.exec.ports import BuildProgress


def one(begin, position, end, rate=0.0):
    """Return the progress of a candidate that reads one partition."""
    return BuildProgress({"s": {0: begin}}, {"s": {0: position}}, {"s": {0: end}}, rate)


@pytest.mark.parametrize(
    ("progress", "read", "left", "share"),
    [
        (one(0, 0, 0), 0, 0, 100),
        (one(0, 0, 8), 0, 8, 0),
        (one(100, 150, 200), 50, 50, 50),
        (one(0, 999, 1000), 999, 1, 99),
        (one(5, 9, 9), 4, 0, 100),
    ],
)
def test_records_and_percent(progress, read, left, share):
    assert (records_read(progress), records_to_read(progress), percent(progress)) == (
        read,
        left,
        share,
    )


def test_topics_and_partitions_are_summed():
    progress = BuildProgress(
        {"s": {0: 0, 1: 10}, "t": {0: 5}},
        {"s": {0: 3, 1: 20}, "t": {0: 5}},
        {"s": {0: 4, 1: 25}, "t": {0: 15}},
    )
    assert (records_read(progress), records_to_read(progress)) == (13, 16)


def test_a_partition_without_a_position_has_not_been_read():
    progress = BuildProgress({"s": {0: 7}}, {}, {"s": {0: 9}, "later": {1: 2}})
    assert (records_read(progress), records_to_read(progress)) == (0, 4)


def test_what_came_after_the_ends_were_asked_for_counts_as_read():
    assert records_to_read(one(0, 12, 10)) == 0
    assert seconds_behind(one(0, 12, 10)) == 0


def test_what_retention_took_is_not_left_to_read():
    assert records_to_read(one(50, 20, 60)) == 10


def test_seconds_are_what_is_left_by_the_speed():
    assert seconds_behind(one(0, 500, 2000, 300.0)) == 5.0


def test_a_candidate_that_reads_nothing_never_ends():
    assert seconds_behind(one(0, 0, 1)) is None


@given(*(st.integers(0, 2**50) for _ in range(3)), st.floats(0, 1e9))
def test_no_progress_gives_a_negative_number(begin, position, end, rate):
    progress = one(begin, position, end, rate)
    assert records_read(progress) >= 0
    assert records_to_read(progress) >= 0
    assert 0 <= percent(progress) <= 100
    assert (percent(progress) == 100) == (records_to_read(progress) == 0)
    assert (seconds_behind(progress) or 0) >= 0
