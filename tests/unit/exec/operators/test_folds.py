from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types.model import STRING
from ksql.exec.operators.folds import Slot, compile_folds
from ksql.functions.aggregates import collecting
from ksql.functions.aggregates.collecting import NothingToUndo
from ksql.functions.spec import AggregateFunction
from ksql.functions.state_copy import copied
from tests.unit.exec.operators.support import COUNT, FUSSY, SUM, refused, slots

_, HISTOGRAM = collecting.ROWS["HISTOGRAM"]
COLLECT_LIST = collecting.ROWS["COLLECT_LIST"][1].make((STRING,), (), {})
LIST = AggregateFunction(("T",), "ARRAY<T>", init=list, step=lambda s, x: [*s, x], skips_null=False)


def _grown(state, value):
    state.append(refused(value))
    return state


def _shrunk(state, value):
    state.remove(value)
    return state


GROWING = AggregateFunction(
    ("T",),
    "ARRAY<T>",
    init=list,
    step=_grown,
    undo=_shrunk,
    result=list,
    skips_null=False,
    in_place=("step", "undo"),
)
"""A list that refuses 13; its first state may be another object than a list's own."""


def test_a_group_from_birth_to_result():
    folds = compile_folds(slots(COUNT, SUM))
    state = folds.init()
    assert state == [-1, 0, 0]
    folds.step(state, (4,))
    folds.step(state, (None,))
    folds.step(state, (6,))
    assert folds.result(state) == (3, 10)
    folds.undo(state, (4,))
    assert folds.result(state) == (2, 6)


def test_states_do_not_share_what_they_hold():
    folds = compile_folds(slots(LIST))
    first, second = folds.init(), folds.init()
    folds.step(first, (1,))
    assert (folds.result(first), folds.result(second)) == (([1],), ([],))


def test_null_reaches_only_those_that_want_it():
    folds = compile_folds(slots(LIST, SUM))
    state = folds.init()
    folds.step(state, (None, None))
    assert folds.result(state) == ([None], 0)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([5], [5, 0, None, 0]),
        ([5, 7], [5, 7, None, 0]),
        ([5, 7, "old"], [5, 7, "old", 0]),
        ([5, 7, "old", 9], [5, 7, "old", 9]),
        ([5, 7, "old", 9, "newer"], [5, 7, "old", 9]),
    ],
)
def test_a_state_of_another_plan_is_completed(stored, expected):
    folds = compile_folds([Slot(0, COUNT, ()), Slot(2, SUM, (0,))])
    assert folds.complete(stored) == expected
    assert folds.init() == [-1, 0, None, 0]


def test_a_completed_state_continues():
    folds = compile_folds([Slot(2, SUM, (0,)), Slot(0, COUNT, ())])
    state = folds.complete([5, 7])
    folds.step(state, (3,))
    assert folds.result(state) == (3, 8)


def test_a_step_that_fails_changes_no_slot():
    folds = compile_folds(slots(COUNT, FUSSY, SUM))
    state = folds.init()
    folds.step(state, (1, 1))
    before = list(state)
    with pytest.raises(ValueError, match="thirteen"):
        folds.step(state, (13, 1))
    assert state == before


def test_a_step_that_fails_leaves_lists_that_grow_in_place_alone():
    folds = compile_folds(slots(GROWING, FUSSY))
    state = folds.init()
    folds.step(state, (1, 1))
    with pytest.raises(ValueError, match="thirteen"):
        folds.step(state, (2, 13))
    assert folds.result(state) == ([1], 1)


@pytest.mark.parametrize("function", [HISTOGRAM, COLLECT_LIST])
def test_an_undo_that_fails_changes_no_slot(function):
    folds = compile_folds(slots(function, HISTOGRAM))
    state = folds.init()
    folds.step(state, ("a", "b"))
    before = folds.result(state)
    with pytest.raises(NothingToUndo):
        folds.undo(state, ("a", "c"))
    assert folds.result(state) == before


@pytest.mark.parametrize("order", list(permutations((GROWING, GROWING, COLLECT_LIST, HISTOGRAM))))
def test_of_several_changes_in_place_one_that_fails_leaves_no_trace(order):
    folds = compile_folds(slots(*order))
    state = folds.init()
    folds.step(state, tuple("a" if function is HISTOGRAM else 1 for function in order))
    before = copied(state)
    for failing in (place for place, function in enumerate(order) if function is GROWING):
        row = [2 if function is not HISTOGRAM else "b" for function in order]
        row[failing] = 13
        with pytest.raises(ValueError, match="thirteen"):
            folds.step(state, tuple(row))
        assert state == before
        unknown = [1 if function is not HISTOGRAM else "a" for function in order]
        unknown[failing] = 99
        with pytest.raises(ValueError, match="not in list"):
            folds.undo(state, tuple(unknown))
        assert state == before


@pytest.mark.parametrize("order", list(permutations((GROWING, COLLECT_LIST, HISTOGRAM, FUSSY))))
@pytest.mark.parametrize("failing", [GROWING, HISTOGRAM, FUSSY])
def test_a_swap_that_fails_leaves_no_trace(order, failing):
    folds = compile_folds(slots(*order))
    state = folds.init()
    old, new = (
        tuple(text if f is HISTOGRAM else n for f in order) for n, text in ((1, "a"), (2, "b"))
    )
    folds.step(state, old)
    before = copied(state)
    place = order.index(failing)
    if failing is HISTOGRAM:
        with pytest.raises(NothingToUndo):
            folds.swap(state, (*old[:place], "none", *old[place + 1 :]), new)
    else:
        with pytest.raises(ValueError, match="thirteen"):
            folds.swap(state, old, (*new[:place], 13, *new[place + 1 :]))
    assert state == before
    folds.swap(state, old, new)
    fresh = folds.init()
    folds.step(fresh, new)
    assert state == fresh


@given(
    st.lists(st.sampled_from((COUNT, SUM, FUSSY, COLLECT_LIST, GROWING)), max_size=4),
    st.lists(st.integers(0, 9) | st.none(), min_size=4, max_size=4),
    st.lists(st.integers(0, 9) | st.none(), min_size=4, max_size=4),
)
def test_a_swap_is_an_undo_and_a_step(functions, old, new):
    folds = compile_folds(slots(*functions))
    at_once, one_by_one = folds.init(), folds.init()
    for state in (at_once, one_by_one):
        folds.step(state, tuple(old))
        folds.step(state, tuple(new))
    folds.swap(at_once, tuple(old), tuple(new))
    folds.undo(one_by_one, tuple(old))
    folds.step(one_by_one, tuple(new))
    assert at_once == one_by_one


def test_a_merge_that_fails_changes_no_slot():
    folds = compile_folds(slots(SUM, replace(SUM, merge=_unmergeable, merge_code=None)))
    state = folds.init()
    with pytest.raises(ValueError, match="cannot be merged"):
        folds.merge(state, [5, 1, 1])
    assert folds.result(state) == (0, 0)


def _unmergeable(_first, _second):
    raise ValueError("cannot be merged")


def test_merging_keeps_the_later_time():
    folds = compile_folds(slots(COUNT, SUM))
    first, second = [5, 2, 10], [3, 1, 4]
    folds.merge(first, second)
    assert first == [5, 3, 14]
    folds.merge(second, [9, 1, 1])
    assert second == [9, 2, 5]


def test_unsupported_fold_disables_all():
    folds = compile_folds(slots(COUNT, LIST))
    assert folds.undo is None
    assert folds.merge is None


def test_no_aggregate_at_all():
    folds = compile_folds([])
    assert folds.result(folds.init()) == ()


# --- what other plans have stored


A, B = 7, 2**32 - 1
"""The generations of two attempts."""


def stored(state, generations=()):
    generation_mark = compile_folds([], generations).generation_mark
    return state if generation_mark is None else [generation_mark, *state]


@pytest.mark.parametrize(
    ("generations", "cells_read", "expected"),
    [
        # the running plan has slot 0; an attempt added slot 1 and was taken back
        ((), stored([5, 7, 100], (0, A)), [5, 7]),
        ((), stored([5, 7]), [5, 7]),
        ((), stored([5, 7, 100]), [5, 7]),  # before there were marks
        # the next attempt has that number for another function
        ((0, B), stored([5, 7, 100], (0, A)), [5, 7, 0]),
        ((0, B), stored([5, 7, 100], (0, B)), [5, 7, 100]),
        ((0, B), stored([5, 7]), [5, 7, 0]),
        ((0, B), stored([5, 7, 100]), [5, 7, 0]),
        # an attempt in front of which an upgrade was made
        ((0, A), stored([5, 7, 100, 3], (0, A, B)), [5, 7, 100]),
        ((0, A, B), stored([5, 7, 100], (0, A)), [5, 7, 100, 0]),
        # a slot that no aggregate has any more keeps its cell: the plan may be taken back
        ((0, A, B), stored([5, 7, "kept", 3], (0, A, B)), [5, 7, "kept", 3]),
        ((0, 0, B), stored([5, 7, "kept"]), [5, 7, "kept", 0]),
    ],
)
def test_a_cell_is_read_by_what_wrote_it_only(generations, cells_read, expected):
    numbers = [n for n in range(len(expected) - 1) if expected[1 + n] != "kept"]
    folds = compile_folds([Slot(n, SUM, (0,)) for n in numbers], generations)
    before = list(cells_read)
    assert folds.complete(cells_read) == expected
    assert (
        cells_read == before or not folds.generation_mark
    )  # only what is put may change what is stored


@given(
    st.lists(st.integers(0, 2), max_size=4),
    st.lists(st.integers(0, 2), max_size=4),
    st.integers(0, 4),
)
def test_any_state_is_read_by_any_plan(wrote, reads, known):
    cells = [10 + n for n in range(len(wrote))]
    slots_ = [Slot(n, SUM, (0,)) for n in range(len(reads)) if n < known]
    cells_read = compile_folds(slots_, reads).complete(stored([5, *cells], wrote))
    theirs = dict(enumerate(wrote))
    for number, generation in enumerate(reads):
        if number in theirs and theirs[number] == generation:
            assert cells_read[1 + number] == 10 + number
        else:
            assert cells_read[1 + number] == (0 if number < known else None)
    assert len(cells_read) == 1 + len(reads)
