"""The model of the crash matrix sees what it must see."""

from __future__ import annotations

import pytest

from tests.crash.switch_model import CELLS, Query, judge, passes

SWITCHED_AT = 6


def rows(sent, switched_at=SWITCHED_AT):
    """What plan 1 has made, and from a record on plan 2."""
    made_by = [(n, 1 if n < switched_at else 2) for n in range(sent)]
    return [(n, version) for n, version in made_by if passes(version, n)]


def test_rows_of_two_plans_are_right():
    assert judge(rows(12), 12, [1, 2], once=True) == ""


@pytest.mark.parametrize("lost", rows(12))
def test_a_lost_row_is_seen(lost):
    left = [row for row in rows(12) if row != lost]
    assert judge(left, 12, [1, 2], once=True)


def test_a_record_at_the_switch_may_have_been_dropped_by_either_plan():
    assert not passes(1, 5)
    assert not passes(2, 6)
    assert judge(rows(12, 5), 12, [1, 2], once=True) == ""
    assert judge(rows(12, 7), 12, [1, 2], once=True) == ""


def test_a_row_that_comes_twice_is_seen_under_exactly_once_only():
    twice = sorted([*rows(12), (7, 2)])
    assert "record 7 has 2 results" in judge(twice, 12, [1, 2], once=True)
    assert judge(twice, 12, [1, 2], once=False) == ""


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ((11, 5), "which the log does not know"),
        ((10, 2), "which drops it"),
        ((3, 2), "out of order"),
    ],
)
def test_a_row_that_cannot_be_is_seen(row, wrong):
    left = [each for each in rows(12) if each[0] not in (row[0], 11)]
    assert wrong in judge([*left, row], 12, [1, 2], once=True)


def test_a_plan_that_comes_back_is_seen():
    back = [*rows(8), (8, 1), (10, 1), (11, 1)]
    assert "behind records of plan 2" in judge(back, 12, [1, 2], once=True)


@pytest.mark.parametrize("cell", CELLS)
def test_the_plans_of_a_query_are_read_off_its_statements(cell):
    query, other = Query(cell, "D_1", "T"), Query(cell, "D_12", "T")
    texts = [query.text("CREATE"), other.text("CREATE"), "PAUSE CSAS_D_1_3;"]
    query.version = 7
    assert query.plans([*texts, query.text("CREATE OR REPLACE")]) == [1, 7]
