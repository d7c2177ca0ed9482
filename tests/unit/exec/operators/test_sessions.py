"""Sessions: merging, its deletions, lateness, what is kept and how long."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.commit_intervals import CommitIntervals
from ksql.exec.operators.folds import Slot, compile_folds
from ksql.exec.operators.keys import pack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import SessionWindows
from ksql.functions.spec import AggregateFunction
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import COUNT, FUSSY, PICKY, SUM, Log, contents, record, slots
from tests.unit.spark.task.test_pages import DictBackend

WINDOWS = SessionWindows(10, 100, 110)
INTERVALS = CommitIntervals(3_600_000)
LISTED = AggregateFunction(
    ("BIGINT",),
    "ARRAY<BIGINT>",
    init=list,
    step=lambda s, x: (s.append(x), s)[1],
    in_place=("step",),
    merge=lambda s, o: (s.extend(o), s)[1],
    result=list,
)
"""A list that changes its states in place."""


def operator(*functions, windows=WINDOWS, every_change=True, keep_old=False, generations=()):
    folds = compile_folds(slots(*functions), generations)
    return SessionProcessor(
        folds, windows, None if every_change else INTERVALS, keep_old, len(functions)
    )


def run(processor, batches, store=None, log=None):
    store = MemoryStore() if store is None else store
    log = Log() if log is None else log
    return [shown(processor.process(batch, store, log)) for batch in batches]


def shown(records):
    """Rows as they are; deletions as the bounds of what goes."""
    return [
        each.row if each.row is not None else ("gone", each.old[0], *each.old[-2:])
        for each in records
    ]


def at(*times, key="a"):
    return [record(key, (), time, offset) for offset, time in enumerate(times)]


@pytest.mark.parametrize("every", [True, False])
def test_a_session_without_results_has_no_row_but_counts(every):
    log = Log()
    batches = [[record("a", (n,), 5)] for n in (2, 1, 2, 1)]
    out = run(operator(COUNT, PICKY, every_change=every), batches, log=log)
    assert out == [[("a", 1, 2, 5, 5, 5)], [], [], [("a", 4, 6, 5, 5, 5)]]
    assert log == [("aggregate", "odd", ("a", 5, 5))] * 2


@pytest.mark.parametrize("every", [True, False])
def test_it_is_deleted_once_where_the_row_before_matters(every):
    batches = [[record("a", (n,), 5)] for n in (2, 1, 2, 1)]
    out = run(operator(COUNT, PICKY, every_change=every, keep_old=True), batches)
    assert out == [[("a", 1, 2, 5, 5, 5)], [("gone", "a", 5, 5)], [], [("a", 4, 6, 5, 5, 5)]]


def test_a_record_alone_is_a_session_of_its_time():
    [out] = run(operator(COUNT), [at(5)])
    assert out == [("a", 1, 5, 5, 5)]


def test_a_record_within_the_gap_moves_a_bound_and_the_former_row_goes():
    [out] = run(operator(COUNT), [at(20, 30, 10)])
    assert out == [
        ("a", 1, 20, 20, 20),
        ("gone", "a", 20, 20),
        ("a", 2, 30, 20, 30),
        ("gone", "a", 20, 30),
        ("a", 3, 30, 10, 30),
    ]


def test_beyond_the_gap_is_another_session():
    [out] = run(operator(COUNT), [at(20, 31, 9)])
    assert out == [("a", 1, 20, 20, 20), ("a", 1, 31, 31, 31), ("a", 1, 9, 9, 9)]


def test_a_record_joins_all_sessions_around_it_the_earliest_goes_first():
    [out] = run(
        operator(COUNT, LISTED), [[record("a", (n,), t, n) for n, t in enumerate((30, 10, 20))]]
    )
    assert out == [
        ("a", 1, [0], 30, 30, 30),
        ("a", 1, [1], 10, 10, 10),
        ("gone", "a", 10, 10),
        ("gone", "a", 30, 30),
        ("a", 3, [1, 0, 2], 30, 10, 30),
    ]


def test_a_record_at_the_time_of_its_session_changes_the_row_alone():
    [out] = run(operator(COUNT), [at(5, 5)])
    assert out == [("a", 1, 5, 5, 5), ("a", 2, 5, 5, 5)]


def test_a_record_inside_a_session_deletes_and_writes_the_same_bounds():
    [out] = run(operator(COUNT), [at(5, 15, 10)])
    assert out[-2:] == [("gone", "a", 5, 15), ("a", 3, 15, 5, 15)]


def test_groups_have_sessions_of_their_own():
    [out] = run(operator(COUNT), [[record("a", (), 5, 0), record("b", (), 6, 1)]])
    assert out == [("a", 1, 5, 5, 5), ("b", 1, 6, 6, 6)]


def test_the_time_of_a_row_is_the_end_of_its_session_and_headers_end():
    store, log = MemoryStore(), Log()
    batch = [record("a", (), 20, 0), record("a", (), 15, 1, headers=[("h", b"x")])]
    _, gone, merged = operator(COUNT).process(batch, store, log)
    assert (gone.timestamp, merged.timestamp) == (20, 20)
    assert (merged.key, merged.offset, merged.headers) == (pack(("a",)), 1, None)


# --- late records


def test_late_record_of_a_session_is_dropped_and_logged():
    log = Log()
    [out] = run(operator(COUNT), [at(1000, 890)], log=log)
    assert out == [("a", 1, 1000, 1000, 1000), ("a", 1, 890, 890, 890)]
    assert log == []
    [out] = run(operator(COUNT), [at(1000, 889)], log=log)
    assert out == [("a", 1, 1000, 1000, 1000)]
    assert log == [("aggregate", "late record for the session from 889 to 889", ())]
    assert log[0][1].behind_ms == 1000 - 889


def test_a_late_record_counts_where_its_session_still_grows():
    wide = SessionWindows(10, 0, 1000)
    [out] = run(operator(COUNT, windows=wide), [at(100, 95, 86, 110, 87)])
    assert out[-2:] == [("gone", "a", 86, 110), ("a", 5, 110, 86, 110)]


def test_a_closed_session_joins_a_record_that_still_counts():
    wide = SessionWindows(10, 0, 1000)
    [out] = run(operator(COUNT, windows=wide), [[*at(80), *at(100, key="b"), *at(90)]])
    assert out[-2:] == [("gone", "a", 80, 80), ("a", 2, 90, 80, 90)]


def test_stream_time_is_of_all_groups_and_is_kept():
    store, log = MemoryStore(), Log()
    run(operator(COUNT), [at(1000)], store, log)
    assert run(operator(COUNT), [at(889, key="b")], store, log) == [[]]
    assert len(log) == 1


def test_a_session_beyond_the_retention_is_not_joined():
    windows = SessionWindows(10, 0, 11)
    [out] = run(operator(COUNT, windows=windows), [[*at(90), *at(101, key="b"), *at(95)]])
    assert out[-1] == ("a", 1, 95, 95, 95)
    windows = SessionWindows(10, 0, 12)
    [out] = run(operator(COUNT, windows=windows), [[*at(90), *at(101, key="b"), *at(95)]])
    assert out[-1] == ("a", 2, 95, 90, 95)


# --- failures


def test_a_record_that_fails_leaves_its_sessions():
    log, store = Log(), MemoryStore()
    processor = operator(FUSSY, LISTED)
    batch = [record("a", (v, v), t, n) for n, (v, t) in enumerate([(1, 10), (2, 30), (13, 20)])]
    [out, then] = run(processor, [batch, [record("a", (5, 5), 30)]], store, log)
    assert out == [("a", 1, [1], 10, 10, 10), ("a", 2, [2], 30, 30, 30)]
    assert log == [("aggregate", "thirteen", (13, 13))]
    assert then == [("a", 7, [2, 5], 30, 30, 30)]
    [merged] = run(processor, [[record("a", (4, 4), 20)]], store, log)
    assert merged[-1] == ("a", 12, [1, 2, 5, 4], 30, 10, 30)


def test_states_that_do_not_merge_stay_apart_and_are_logged():
    def refused(_first, _second):
        raise ValueError("apart")

    alone = AggregateFunction(
        ("BIGINT",), "BIGINT", init=int, step=lambda s, x: s + x, merge=refused
    )
    log, store = Log(), MemoryStore()
    batch = [record("a", (v, v), t, n) for n, (v, t) in enumerate([(1, 10), (2, 30), (3, 20)])]
    [out, then] = run(operator(LISTED, alone), [batch, [record("a", (4, 4), 31)]], store, log)
    assert out == [("a", [1], 1, 10, 10, 10), ("a", [2], 2, 30, 30, 30)]
    assert log == [("aggregate", "apart", (3, 3))]
    assert then == [("gone", "a", 30, 30), ("a", [2, 4], 6, 31, 30, 31)]


# --- once per call


def test_or_each_session_once_per_batch():
    store = MemoryStore()
    processor = operator(COUNT, every_change=False)
    first, second, third = run(
        processor, [[*at(20, 25), *at(21, key="b"), *at(30)], at(35, 40), at(32)], store
    )
    assert first == [("b", 1, 21, 21, 21), ("a", 3, 30, 20, 30)]
    assert second == [("gone", "a", 20, 30), ("a", 5, 40, 20, 40)]
    assert third == [("a", 6, 40, 20, 40)]


def test_session_merged_within_a_batch_is_not_emitted():
    processor = operator(COUNT, every_change=False)
    assert run(processor, [at(10, 30, 20)]) == [[("a", 3, 30, 10, 30)]]


def test_the_rows_before_for_having():
    for every_change in (True, False):
        processor = operator(COUNT, SUM, keep_old=True, every_change=every_change)
        store, log = MemoryStore(), Log()
        changes = [
            [(each.row, each.old) for each in processor.process([batch], store, log)]
            for batch in (record("a", (3,), 5), record("a", (4,), 5), record("a", (1,), 9))
        ]
        assert changes[1] == [(("a", 2, 7, 5, 5, 5), ("a", 1, 3, 5, 5, 5))]
        assert changes[2] == [
            (None, ("a", 2, 7, 5, 5, 5)),
            (("a", 3, 8, 9, 5, 9), None),
        ]


# --- upgrades


def test_an_aggregate_that_an_upgrade_adds_starts_empty_in_every_session():
    store = MemoryStore()
    run(operator(COUNT), [at(10, 30)], store)
    added = [Slot(0, COUNT, ()), Slot(1, SUM, (0,))]
    folds = compile_folds(added, (0, 1))
    processor = SessionProcessor(folds, WINDOWS, None, False, 2)
    assert run(processor, [[record("a", (4,), 30)]], store) == [[("a", 2, 4, 30, 30, 30)]]
    assert run(processor, [[record("a", (5,), 20)]], store)[0][-1] == ("a", 4, 9, 30, 10, 30)
    # taken back, and tried again with another one in its place
    assert run(operator(COUNT), [[record("a", (), 30)]], store)[0][-1] == ("a", 5, 30, 10, 30)
    again = SessionProcessor(compile_folds(added, (0, 2)), WINDOWS, None, False, 2)
    assert run(again, [[record("a", (7,), 30)]], store)[0][-1] == ("a", 6, 7, 30, 10, 30)


# --- the state


class Watched(MemoryStore):
    """A store that counts its calls."""

    def __init__(self):
        super().__init__()
        self.loaded, self.scanned = [], 0

    def load(self, space, keys):
        self.loaded.append((space, set(keys)))

    def scan(self, space):
        self.scanned += 1
        return super().scan(space)


def test_a_batch_loads_no_more_than_the_times_at_hand():
    store = Watched()
    processor = operator(COUNT, windows=SessionWindows(10, 10_000, 20_000))
    for time in range(0, 10_000, 100):
        run(processor, [at(time)], store)
    store.loaded.clear()
    run(processor, [[*at(10_000), *at(10_001, key="b")]], store)
    assert len(store.loaded) <= 2
    store.loaded.clear()
    run(processor, [[*at(10_100), *at(9_000, key="b")]], store)
    assert sum(pack(("a",)) in keys for _, keys in store.loaded) <= 2
    assert store.scanned == 0


def test_old_sessions_are_forgotten_with_their_slices():
    store = MemoryStore()
    processor = operator(COUNT, windows=SessionWindows(10, 100, 200))
    for time in range(0, 100_000, 50):
        run(processor, [at(time, key=str(time % 7))], store)
    held = [entry for entries in contents(store).values() for entry in entries.values()]
    assert len(held) < 30


entries = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 300), st.integers(0, 20)), max_size=60
)
clauses = st.builds(
    lambda gap, grace, more: SessionWindows(gap, grace, gap + grace + more),
    st.integers(1, 40),
    st.integers(0, 150),
    st.integers(0, 100),
)


def cut_up(records, lengths):
    batches, lengths = [], iter(lengths)
    while records:
        size = next(lengths, len(records))
        batches.append(records[:size])
        records = records[size:]
    return batches


def rows_of(entries):
    return [record(key, (value,), time, n) for n, (key, time, value) in enumerate(entries)]


@given(entries, clauses, st.lists(st.integers(1, 20)), st.booleans())
def test_results_do_not_depend_on_how_batches_are_cut(entries, windows, lengths, paged):
    processor = operator(FUSSY, LISTED, windows=windows, keep_old=True)
    records = [record(key, (value, value), time, n) for n, (key, time, value) in enumerate(entries)]
    log, cut_log = Log(), Log()
    [whole] = run(processor, [records], log=log)
    backend, cut = DictBackend(), []
    memory = MemoryStore()
    for batch in cut_up(records, lengths):
        store = PagedStore(backend) if paged else memory
        cut += shown(processor.process(batch, store, cut_log))
        if paged:
            store.flush()
    assert cut == whole
    assert cut_log == log


def last_rows(out):
    rows: dict[Any, Any] = {}
    for row in out:
        if row[0] == "gone":
            rows.pop(row[1:], None)
        else:
            rows[row[0], *row[-2:]] = row
    return rows


@given(entries, clauses, st.lists(st.integers(1, 20)))
def test_change_per_batch_ends_where_every_change_ends(entries, windows, lengths):
    batches = cut_up(rows_of(entries), lengths)
    every = run(operator(COUNT, SUM, windows=windows), batches)
    once = run(operator(COUNT, SUM, windows=windows, every_change=False), batches)
    assert last_rows(chain(*once)) == last_rows(chain(*every))
    assert all(len({_place(row) for row in out}) == len(out) for out in once)


def _place(row):
    return row[1:] if row[0] == "gone" else (row[0], *row[-2:])


@given(entries, st.integers(1, 40))
def test_sessions_are_the_runs_of_records_without_a_larger_gap(entries, gap):
    windows = SessionWindows(gap, 10_000, 20_000)
    [out] = run(operator(COUNT, SUM, windows=windows), [rows_of(entries)])
    expected = {}
    for key in {key for key, _, _ in entries}:
        mine = sorted((time, value) for k, time, value in entries if k == key)
        runs = [[mine[0]]]
        for each in mine[1:]:
            if each[0] - runs[-1][-1][0] <= gap:
                runs[-1].append(each)
            else:
                runs.append([each])
        for one in runs:
            start, end = one[0][0], one[-1][0]
            total = sum(value for _, value in one)
            expected[key, start, end] = (key, len(one), total, end, start, end)
    assert last_rows(out) == expected


@pytest.mark.parametrize("size", [1, 300])
def test_a_group_with_many_sessions_reads_some_of_them(size):
    store = Watched()
    windows = SessionWindows(10, 1_000_000, 2_000_000)
    run(operator(COUNT, windows=windows), [at(*range(0, size * 100, 100))], store)
    store.loaded.clear()
    [out] = run(operator(COUNT, windows=windows), [at((size - 1) * 100 + 5)], store)
    assert out[-1] == ("a", 2, *((size - 1) * 100 + n for n in (5, 0, 5)))
    assert len(store.loaded) <= 2
