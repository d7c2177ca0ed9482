"""Streams joined with streams."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.error_table import UNKNOWN_JOIN_STATE
from ksql.exec.operators.joining import join_buffer
from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.streams import StreamJoinProcessor, Within
from ksql.exec.operators.keys import pack
from ksql.exec.operators.memory import MemoryStore
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import Log, contents, record
from tests.unit.spark.task.test_pages import DictBackend

LEFT, RIGHT = 0, 1
KINDS = {
    "INNER": (False, False),
    "LEFT": (True, False),
    "RIGHT": (False, True),
    "FULL": (True, True),
}
DAY = 24 * 3_600_000


def join_of(kind="INNER", before=10, after=10, grace=None, left=(1,), right=(1,), ending=None):
    within = Within(before, after, DAY if grace is None else grace, eager=grace is None)
    sides = Side(LEFT, left), Side(RIGHT, right)
    return StreamJoinProcessor(*sides, *KINDS[kind], within, ending or Ending())


def left(key, value, time, offset=0, **more):
    return record(key, (value,), time, offset, topic=0, **more, port=LEFT)


def right(key, value, time, offset=0, **more):
    return record(key, (value,), time, offset, topic=1, **more, port=RIGHT)


def run(join, records, store=None, log=None):
    log = Log() if log is None else log
    results = list(join.process(records, MemoryStore() if store is None else store, log))
    assert all(each.timestamp == each.row[-1] for each in results)
    return [each.row for each in results]


ORDINARY = [left("k", "a", 0), right("k", "b", 10), right("k", "c", 11), left("k", "d", 20)]


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("INNER", [("a", "b", 10), ("d", "b", 20), ("d", "c", 20)]),
        ("LEFT", [("a", None, 0), ("a", "b", 10), ("d", "b", 20), ("d", "c", 20)]),
        ("RIGHT", [("a", "b", 10), (None, "c", 11), ("d", "b", 20), ("d", "c", 20)]),
        ("FULL", [("a", None, 0), ("a", "b", 10), (None, "c", 11), ("d", "b", 20), ("d", "c", 20)]),
    ],
)  # fmt: skip
def test_without_grace_a_missing_match_is_reported_at_once(kind, missing):
    assert run(join_of(kind), ORDINARY) == missing


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("INNER", [("a", "b", 10)]),
        ("LEFT", [("a", "b", 10)]),
        ("RIGHT", [("a", "b", 10), (None, "c", 11)]),
        ("FULL", [("a", "b", 10), (None, "c", 11)]),
    ],
)
def test_with_grace_a_missing_match_is_reported_when_none_can_come(kind, missing):
    join, store = join_of(kind, grace=5), MemoryStore()
    assert run(join, ORDINARY[:3], store) == missing[:1]
    assert run(join, [right("other", "x", 26)], store) == []
    rows = run(join, [left("other", "y", 27)], store)
    assert rows[: len(missing) - 1] == missing[1:]


def test_unmatched_rows_leave_by_time_the_right_side_first():
    join, store = join_of("FULL", grace=0), MemoryStore()
    records = [
        left("b", "l1", 5), right("c", "r1", 5), left("a", "l2", 5), left("a", "l3", 3),
        left("a", "l4", 5),
    ]  # fmt: skip
    assert run(join, records, store) == []
    out = list(join.process([left("z", "now", 100, 9, headers=[("h", b"x")])], store, Log()))
    assert [each.row for each in out] == [
        ("l3", None, 3), (None, "r1", 5), ("l2", None, 5), ("l4", None, 5), ("l1", None, 5),
    ]  # fmt: skip
    assert [each.key for each in out] == [pack((key,)) for key in "acaab"]
    assert {(each.offset, each.timestamp == each.row[-1]) for each in out} == {(9, True)}


def test_a_late_record_without_match_is_reported_at_once():
    join, store = join_of("LEFT", grace=5), MemoryStore()
    assert run(join, [right("x", "r", 100), left("k", "a", 80)], store) == [("a", None, 80)]
    assert run(join, [left("k", "b", 95)], store) == []


def test_a_match_within_grace_is_given_besides():
    """Kafka Streams does not wait for the grace period of a record whose window has ended."""
    late = [right("k", "x", 100), left("k", "a", 85), right("k", "m", 90)]
    assert run(join_of("LEFT", grace=30), late) == [("a", None, 85), ("a", "m", 90)]


def test_a_record_that_is_too_late_to_be_met_waits_like_any_other():
    """Its window closes after the last record that it could have met was forgotten."""
    join, store = join_of("LEFT", before=0, after=10, grace=0), MemoryStore()
    assert run(join, [left("k", "a", 20), left("k", "b", 10)], store) == []
    assert run(join, [left("k", "c", 21)], store) == [("b", None, 10)]


def test_a_record_without_row_moves_the_time():
    join, store = join_of("LEFT", grace=0), MemoryStore()
    assert run(join, [left("k", "a", 10)], store) == []
    tick = left("k", None, 30)._replace(row=None)
    assert run(join, [tick, left("k", "b", 19)], store) == [("b", None, 19)]
    assert run(join, [left("x", "c", 30)], store) == [("a", None, 10)]


def test_a_window_may_look_one_way_only():
    join, store = join_of(before=0, after=10), MemoryStore()
    run(join, [left("k", "a", 50)], store)
    assert run(join, [right("k", "b", 49), right("k", "c", 50), right("k", "d", 61)], store) == [
        ("a", "c", 50)
    ]
    assert run(join, [left("k", "e", 40), left("k", "f", 38)], store) == [
        ("e", "b", 49),
        ("e", "c", 50),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_null_keys_meet_nothing(kind):
    outer_left, outer_right = KINDS[kind]
    records = ([left(None, "a", 1)] if outer_left else []) + (
        [right(None, "b", 1)] if outer_right else []
    )
    unmatched = ([("a", None, 1)] if outer_left else []) + ([(None, "b", 1)] if outer_right else [])
    assert run(join_of(kind, grace=5), records) == unmatched


def test_records_are_forgotten_by_the_time_of_their_own_side():
    join, store, log = join_of(before=10, after=10, grace=0), MemoryStore(), Log()
    run(join, [left("k", "old", 100), left("k", "new", 119)], store)
    assert run(join, [right("k", "b", 105)], store, log) == [("old", "b", 105)]
    run(join, [left("k", "newest", 120)], store)
    assert run(join, [right("k", "c", 105)], store, log) == []
    assert run(join, [left("k", "late", 100)], store, log) == [
        ("late", "b", 105),
        ("late", "c", 105),
    ]
    assert [entry[0] for entry in log] == ["join"]
    assert "late record" in log[0][1]
    assert log[0][1].behind_ms == 120 - 100


def test_forgotten_records_leave_the_state():
    join, store = join_of("LEFT", grace=0), MemoryStore()
    for time in range(0, 600_000, 20_000):
        run(join, [left("k", "a", time), right("k", "b", time)], store)
    spaces = list(contents(store))
    assert len(spaces) <= 5
    assert sum(len(list(store.scan(space))) for space in spaces) < 15


def test_a_busy_key_is_stored_in_chunks():
    join, store, size = join_of(), MemoryStore(), 5 * join_buffer.CHUNK_RECORDS
    for number in range(size):
        run(join, [left("k", number, 1)], store)
    heads = [
        value
        for space, entries in contents(store).items()
        if space[:1] == b"l"
        for value in entries.values()
    ]
    assert [(sealed, len(fresh)) for sealed, _, fresh in heads] == [(5, 0)]
    assert run(join, [right("k", "x", 2)], store) == [(number, "x", 2) for number in range(size)]


def test_sides_may_get_more_columns():
    store = MemoryStore()
    narrow = join_of("FULL", grace=5, left=(1,), right=(1,))
    run(narrow, [left("k", "a", 1), right("j", "b", 1)], store)
    wide = join_of("FULL", grace=5, left=(2,), right=(3,))
    late = right("k", "c", 2)._replace(row=("c", "d", "e"))
    assert run(wide, [late], store) == [("a", None, "c", "d", "e", 2)]
    assert run(wide, [left("x", "y", 90)._replace(row=("y", 0))], store) == [
        (None, None, "b", None, None, 1)
    ]


def test_the_key_and_the_window_can_follow():
    join = join_of("FULL", ending=Ending(key=True, windowed=True))
    windowed = left("k", "a", 1)._replace(key=pack(("k", 0, 60)))
    assert run(join, [windowed]) == [("a", None, "k", 0, 60, 1)]


def test_state_of_a_newer_version_is_refused():
    join, store = join_of(), MemoryStore()
    run(join, [left("k", "a", 1)], store)
    stored = store.get(b"m", b"join")
    store.put(b"m", b"join", [2, *stored[1:]])
    with pytest.raises(UNKNOWN_JOIN_STATE.base, match="format 2"):
        run(join, [left("k", "a", 1)], store)


# --- against a join that remembers everything


def plainly(kind, before, after, grace, records):
    """The join as Kafka Streams defines it, without any structure."""
    outer = dict(zip((True, False), KINDS[kind], strict=True))
    eager = grace is None
    kept_ms = before + after + (DAY if eager else grace)
    sides: dict[bool, list[Any]] = {True: [], False: []}
    waits: list[Any] = []
    now, out = -1, []

    def alone(is_left, value, time):
        out.append((value, None, time) if is_left else (None, value, time))

    for each in records:
        is_left, key, time, value = each.port == LEFT, each.key, each.timestamp, each.row[0]
        now = max(now, time)
        if key == pack((None,)):
            if outer[is_left]:
                alone(is_left, value, time)
            continue
        if time == now and not eager:
            closed = [w for w in waits if w[0] + (after if w[1] else before) + grace < now]
            waits = [w for w in waits if w not in closed]
            for when, side, _, held in sorted(closed, key=lambda w: w[:3]):
                alone(side, held, when)
        earlier, later = (before, after) if is_left else (after, before)
        others = sides[not is_left]
        seen = max((t for t, _, _ in others), default=-1)
        first = max(time - earlier, seen - kept_ms + 1)
        matches = [o for o in others if o[1] == key and first <= o[0] <= time + later]
        for when, _, other in sorted(matches, key=lambda o: o[0]):
            pair = (value, other) if is_left else (other, value)
            out.append((*pair, max(time, when)))
            waits = [w for w in waits if w[:3] != (when, not is_left, key)]
        sides[is_left].append((time, key, value))
        if outer[is_left] and not matches:
            if eager or time + later < now:
                alone(is_left, value, time)
            else:
                waits.append((time, is_left, key, value))
    return out


@st.composite
def inputs(draw):
    count = draw(st.integers(0, 40))
    base, drawn = 0, []
    for number in range(count):
        base += draw(st.integers(0, 30))
        time = max(0, base - draw(st.integers(0, 90)))
        key = draw(st.sampled_from(["a", "b", "a", "b", None]))
        make = draw(st.sampled_from([left, right]))
        drawn.append(make(key, number, time, number))
    return drawn


@given(
    kind=st.sampled_from(sorted(KINDS)),
    reach=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    grace=st.none() | st.integers(0, 60),
    records=inputs(),
    cuts=st.sets(st.integers(0, 40)),
    randoms=st.randoms(),
)
def test_it_is_the_plain_join_however_batches_are_cut(kind, reach, grace, records, cuts, randoms):
    outer = dict(zip((LEFT, RIGHT), KINDS[kind], strict=True))
    records = [r for r in records if outer[r.port] or r.key != pack((None,))]
    before, after = reach
    expected = plainly(kind, before, after, grace, records)
    join = join_of(kind, before, after, grace)
    backend, memory, out, kept = DictBackend(), MemoryStore(), [], []
    bounds = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    for start, end in pairwise(bounds):
        paged = PagedStore(backend)
        out += run(join, records[start:end], paged)
        paged.flush()
        kept += run(join, records[start:end], memory)
    assert out == expected
    assert kept == expected


def test_many_that_wait(monkeypatch):
    monkeypatch.setattr(join_buffer, "CHUNK_ENTRIES", 4)
    join, backend = join_of("LEFT", grace=0), DictBackend()

    def go(records):
        store = PagedStore(backend)
        results = run(join, records, store)
        store.flush()
        return results

    out = []
    for start in range(0, 60, 7):
        out += go([left(n % 5, n, n) for n in range(start, min(start + 7, 60))])
    out += go([left("end", "end", 1000)])
    assert out == [(n, None, n) for n in range(60)]
