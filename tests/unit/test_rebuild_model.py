"""The model that judges rebuilds finds what is wrong with the rows of a table."""

from __future__ import annotations

import pytest

from tests.crash.rebuild_model import EQUAL, SINGLE, Rebuilt, live
from tests.crash.switch_model import EXACTLY_ONCE, KEYS, Cell, passes
from tests.kafka.records import Seen

TABLES = ("aggregate", "windowed", "session", "fk")


@pytest.fixture(params=TABLES)
def query(request):
    """A query that has had two rounds of records."""
    rebuilt = Rebuilt(Cell(EXACTLY_ONCE, request.param), "X", "T")
    list(rebuilt.records(8))
    return rebuilt


def written(query, *plans):
    """The records of a topic whose plans have each written all their rows."""
    rows: dict[str, dict[str, object]] = {}
    records: list[Seen] = []
    for plan in plans:
        new = {f"{key}\0{value.get('WS')}": value for key, value in query.rows(plan)}
        gone = dict.fromkeys(rows.keys() - new.keys())
        for key, value in (new | gone).items():
            if rows.get(key) != value:
                records.append(Seen(0, len(records), key, value, 0))
        rows = new
    return records


def test_rows_of_plans_in_their_order_are_right(query):
    records = written(query, 1, 2)
    assert query.wrong(records, (1, 2)) == ""
    assert live(records) == [row for row in live(records) if row in query.rows(2)]
    assert len(live(records)) == len(query.rows(2))
    assert query.wrong(written(query, 1, 2, 1), (1, 2, 1)) == ""


def test_a_row_behind_one_of_a_later_plan_is_wrong(query):
    assert "is of plan 1, behind 2" in query.wrong(written(query, 1, 2, 1), (1, 2))


def test_a_row_of_two_plans_is_wrong(query):
    records = written(query, 1, 2)
    at = next(i for i, seen in enumerate(records) if seen.value and seen.value["V"] == 2)
    records[at] = records[at]._replace(value=records[at].value | {"N": 6})  # plan 2 drops it
    assert not passes(2, 6)
    assert "is of no plan" in query.wrong(records, (1, 2))


def test_a_row_that_comes_twice_is_wrong_exactly_once(query):
    records = written(query, 1)
    again = [*records, next(seen for seen in records if str(seen.key).startswith(KEYS[0]))]
    assert "comes twice" in query.wrong(again, (1,))
    query.cell = Cell("at_least_once", query.cell.kind)
    assert query.wrong(again, (1,)) == ""


def test_each_plan_drops_another_key_and_none_the_equal_one(query):
    keys = [{key for key, _ in query.rows(plan)} & SINGLE.keys() for plan in (1, 2, 3)]
    assert keys == [{"s0", "s2", EQUAL}, {"s0", "s1", EQUAL}, {"s1", "s2", EQUAL}]
    assert sum(seen.key.startswith(EQUAL) for seen in written(query, 1, 2, 3)) == 1
