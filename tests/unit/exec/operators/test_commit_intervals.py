"""Commit intervals: which items belong together, and what is folded in each."""

from __future__ import annotations

import pytest

from ksql.exec.operators.base import Record
from ksql.exec.operators.commit_intervals import CommitIntervals, IntervalStates, by_time

TEN = CommitIntervals(10)


def itself(number):
    return number


@pytest.mark.parametrize(
    ("sequence_keys", "parts"),
    [
        ([], []),
        ([3, 3, 9], [(0, [3, 3, 9])]),
        ([-1, 0, 10, 19, 40], [(-10, [-1]), (0, [0]), (10, [10, 19]), (40, [40])]),
    ],
)
def test_items_are_divided_where_an_interval_ends(sequence_keys, parts):
    assert list(TEN.divide(sequence_keys, itself)) == parts


@pytest.mark.parametrize(
    ("sequence_keys", "runs"),
    [
        ([], []),
        ([5], [(True, 0, 1)]),
        ([5, 6], [(False, 0, 2)]),
        ([1, 11, 12, 25, 38], [(True, 0, 1), (False, 1, 3), (True, 3, 5)]),
        ([1, 2, 11, 12], [(False, 0, 2), (False, 2, 4)]),
    ],
)
def test_runs_of_items_with_an_interval_each(sequence_keys, runs):
    assert list(TEN.runs(sequence_keys)) == runs


def fold(states, *sequence_keys):
    counts = states.states
    for sequence_key in sequence_keys:
        begin, end = states.turn(sequence_key)
        assert begin <= sequence_key < end
        counts["n"] = counts.get("n", 0) + 1


def test_each_interval_has_states_of_its_own():
    states: IntervalStates[int] = IntervalStates(TEN)
    fold(states, 1, 2, 13, 30)
    fold(states, 31, 4)
    assert states.finish() == [(0, [("n", 2)]), (10, [("n", 1)]), (30, [("n", 2)]), (0, [("n", 1)])]
    assert states.finish() == []


def test_without_intervals_there_is_one():
    states: IntervalStates[int] = IntervalStates(None)
    fold(states, 1, 1 << 41, 5)
    assert states.finish() == [(0, [("n", 3)])]


def change(key, time):
    return Record(0, key, (), time, 0, 0, 0, None, None, time, 0)


def test_changes_that_are_older_than_their_interval_come_first_by_their_times():
    changes = [change(b"a", 12), change(b"b", 10), change(b"c", 7), change(b"d", 3)]
    placed = [(each.key, each.timestamp, each.sequence_key) for each in by_time(changes, 10)]
    assert placed == [(b"d", 3, 10), (b"c", 7, 10), (b"b", 10, 10), (b"a", 12, 12)]
