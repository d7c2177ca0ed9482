"""Folding before the exchange gives what folding each record behind it gives."""

from __future__ import annotations

import pytest

from ksql.exec.operators.commit_intervals import CommitIntervals
from ksql.exec.operators.folds import Slot, compile_folds
from ksql.exec.operators.keys import unpack
from ksql.exec.operators.partial_aggregation import Combiner, compile_combine
from ksql.functions.spec import AggregateFunction

COUNT = AggregateFunction(
    (), "BIGINT", init=int, step=lambda s, *_: s + 1, merge=lambda a, b: a + b
)
JOIN = AggregateFunction(
    ("STRING val",),
    "STRING",
    init=str,
    step=lambda s, value: s + value.upper(),
    merge=lambda a, b: a + b,
)
INTERVALS = CommitIntervals(10)
SLOTS = [Slot(0, COUNT, ()), Slot(2, JOIN, (0,))]


def silent(*entry):
    raise AssertionError(entry)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("width", [1, 2])
def test_groups_are_folded_over_batches(plain, width):
    combiner = Combiner(compile_combine(SLOTS, width, plain=plain), INTERVALS)
    key_a, key_b = (1,) * width, (2,) * width
    combiner.add([(*key_a, "x"), None, (*key_b, "y")], [5, 6, 7], [5, 6, 7], silent)
    combiner.add([(*key_a, "z")], [3], [7], silent)
    groups = {tuple(unpack(r.key)): (r.row, r.timestamp) for r in combiner.finish()}
    assert groups == {key_a: ((5, 2, None, "XZ"), 5), key_b: ((7, 1, None, "Y"), 7)}


def test_a_record_that_fails_changes_nothing_and_is_logged():
    entries = []
    combiner = Combiner(compile_combine(SLOTS, 1, plain=True), INTERVALS)
    combiner.add([(1, "x"), (1, 7)], [1, 9], [1, 9], lambda *entry: entries.append(entry))
    (record,) = combiner.finish()
    assert record.row == (1, 1, None, "X")
    assert [(operator, row) for operator, _, row in entries] == [("aggregate", (7,))]


def test_keys_that_are_no_hashable_values_are_packed():
    combiner = Combiner(compile_combine(SLOTS, 1, plain=False), INTERVALS)
    combiner.add([([1, 2], "x"), ([1, 2], "y")], [1, 2], [1, 2], silent)
    (record,) = combiner.finish()
    assert unpack(record.key) == [[1, 2]]


def test_partial_states_can_be_merged():
    folds = compile_folds(SLOTS)
    combiner = Combiner(compile_combine(SLOTS, 1, plain=True), INTERVALS)
    combiner.add([(1, "x"), (1, "y")], [1, 2], [1, 2], silent)
    (record,) = combiner.finish()
    state = folds.init()
    assert folds.merge is not None
    folds.merge(state, record.row)
    assert state == [2, 2, None, "XY"]


def test_the_records_of_each_commit_interval_have_a_state():
    combiner = Combiner(compile_combine(SLOTS, 1, plain=True), INTERVALS)
    combiner.add([(1, "x"), None, (1, "y")], [5, 25, 6], [5, 25, 25], silent)
    combiner.add([(1, "z")], [8], [28], silent)
    states = [(r.sequence_key, r.timestamp, r.row) for r in combiner.finish()]
    assert states == [(0, 5, (5, 1, None, "X")), (20, 8, (8, 2, None, "YZ"))]
