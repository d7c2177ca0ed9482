"""Tables joined on their primary keys: what Kafka Streams gives for each change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import TableJoinProcessor
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.order import in_order
from tests.examples import examples
from tests.unit.exec.operators.support import Log, in_sequence, record

LEFT, RIGHT = 4, 5
KINDS = {
    "INNER": (False, False),
    "LEFT": (True, False),
    "RIGHT": (False, True),
    "FULL": (True,) * 2,
}


def join_of(kind, left=1, right=1, *, key=False):
    keeps_left, keeps_right = KINDS[kind]
    sides = Side(LEFT, (left,)), Side(RIGHT, (right,))
    return TableJoinProcessor(*sides, keeps_left, keeps_right, Ending(key=key))


def left(row, time, key="k"):
    return record(key, row, time, time, topic=0, port=LEFT)


def right(row, time, key="k"):
    return record(key, row, time, time, topic=1, port=RIGHT)


def run(processor, batch, store):
    """Rows without their time, the rows they replace, and the results' times."""
    out = list(processor.process(in_order(in_sequence(batch)), store, Log()))
    return [(r.row and r.row[:-1], r.old and r.old[:-1], r.timestamp) for r in out]


BOTH = [left(("l1",), 1), right(("r2",), 2)]
MATCH = ("l1", "r2")
FIRST = {
    "INNER": [(MATCH, None, 2)],
    "LEFT": [(("l1", None), None, 1), (MATCH, ("l1", None), 2)],
    "RIGHT": [(MATCH, None, 2)],
    "FULL": [(("l1", None), None, 1), (MATCH, ("l1", None), 2)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_either_side_triggers(kind):
    assert run(join_of(kind), BOTH, MemoryStore()) == FIRST[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_comes_with_the_row_that_it_replaces_and_the_later_time(kind):
    store = MemoryStore()
    run(join_of(kind), BOTH, store)
    results = run(join_of(kind), [left(("l0",), 0)], store)
    assert results == [(("l0", "r2"), MATCH, 2)]
    assert run(join_of(kind), [right(("r9",), 9)], store) == [(("l0", "r9"), ("l0", "r2"), 9)]


@pytest.mark.parametrize(
    ("kind", "left_gone", "right_gone"),
    [
        ("INNER", None, None),
        ("LEFT", None, ("l1", None)),
        ("RIGHT", (None, "r2"), None),
        ("FULL", (None, "r2"), ("l1", None)),
    ],
)
def test_a_deletion_of_one_side(kind, left_gone, right_gone):
    for gone, rest in ((left(None, 3), left_gone), (right(None, 3), right_gone)):
        store = MemoryStore()
        run(join_of(kind), BOTH, store)
        assert run(join_of(kind), [gone], store) == [(rest, MATCH, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_row_that_goes_takes_a_kept_result_with_it(kind):
    keeps_left, keeps_right = KINDS[kind]
    for keeps, first, then, rest in (
        (keeps_left, right(None, 3), left(None, 4), ("l1", None)),
        (keeps_right, left(None, 3), right(None, 4), (None, "r2")),
    ):
        store = MemoryStore()
        run(join_of(kind), [*BOTH, first], store)
        assert run(join_of(kind), [then], store) == ([(None, rest, 4)] if keeps else [])


@pytest.mark.parametrize("kind", KINDS)
def test_the_deletion_of_an_unknown_row_says_nothing_where_the_other_side_is_empty(kind):
    store = MemoryStore()
    assert run(join_of(kind), [left(None, 1), right(None, 2)], store) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_deletion_of_an_unknown_row_continues_where_the_other_side_has_one(kind):
    """Kafka Streams does not know better either: a tombstone, or the kept side's row once more."""
    keeps_left, keeps_right = KINDS[kind]
    store = MemoryStore()
    run(join_of(kind), [right(("r",), 1)], store)
    same: Any = (None, "r") if keeps_right else None
    assert run(join_of(kind), [left(None, 2)], store) == [(same, same, 2)]
    store = MemoryStore()
    run(join_of(kind), [left(("l",), 1)], store)
    same = ("l", None) if keeps_left else None
    assert run(join_of(kind), [right(None, 2)], store) == [(same, same, 2)]


def test_synthetic_key_precedes_the_time():
    [out] = join_of("FULL", key=True).process([right(("r",), 7)], MemoryStore(), Log())
    assert out.row == (None, "r", "k", 7)


def test_rows_of_before_a_side_got_more_columns_are_padded():
    store = MemoryStore()
    run(join_of("FULL"), BOTH, store)
    wider = join_of("FULL", 2, 3)
    assert run(wider, [left(("l3", 3), 3)], store) == [
        (("l3", 3, "r2", None, None), ("l1", None, "r2", None, None), 3)
    ]
    assert run(join_of("FULL"), [right(("r4",), 4)], store) == [(("l3", "r4"), ("l3", "r2"), 4)]


# --- against a model, in any cut ----------------------------------------------------------------

CHANGES = st.lists(
    st.tuples(st.sampled_from((LEFT, RIGHT)), st.sampled_from("ab"), st.none() | st.integers(0, 3)),
    max_size=25,
)
CUTS = st.lists(st.integers(1, 6), max_size=25)


def records_of(changes):
    make = {LEFT: left, RIGHT: right}
    return [
        make[port](None if value is None else (value,), time, key)
        for time, (port, key, value) in enumerate(changes)
    ]


def cut(records, sizes):
    """The records in batches of those sizes, the rest in one."""
    batches, start = [], 0
    for size in sizes:
        batches.append(records[start : start + size])
        start += size
    return [batch for batch in (*batches, records[start:]) if batch]


def model(kind, changes):
    """All results, a change after the other, with the rule in words of tables."""
    keeps = dict(zip((LEFT, RIGHT), KINDS[kind], strict=True))
    tables: dict[int, dict[str, Any]] = {LEFT: {}, RIGHT: {}}
    out = []

    def result(key):
        row = {port: table.get(key) for port, table in tables.items()}
        there = {port for port, value in row.items() if value is not None}
        if there == {LEFT, RIGHT} or any(keeps[port] for port in there):
            return row[LEFT], row[RIGHT]
        return None

    for time, (port, key, value) in enumerate(changes):
        other = tables[LEFT + RIGHT - port].get(key)
        before, known = result(key), tables[port].get(key)
        tables[port][key] = value
        nothing = value is None and known is None
        if other is not None or (keeps[port] and not nothing):
            out.append((key, result(key), before, time))
    return out


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(60), deadline=None)
@given(changes=CHANGES, sizes=CUTS)
def test_no_cut_into_batches_changes_the_results(kind, changes, sizes):
    store, processor, results = MemoryStore(), join_of(kind, key=True), []
    for batch in cut(records_of(changes), sizes):
        for out in processor.process(in_order(in_sequence(batch)), store, Log()):
            key = (out.row or out.old or (None, None, None))[2]
            results.append((key, out.row and out.row[:2], out.old and out.old[:2], out.timestamp))
    expected = model(kind, changes)
    assert [f[1:] for f in results] == [e[1:] for e in expected]
    assert all(f[0] in (None, e[0]) for f, e in zip(results, expected, strict=True))
