"""EMIT FINAL: each window once, when it has closed; for time windows and for sessions."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.aggregate import AggregateProcessor
from ksql.exec.operators.folds import Slot, compile_folds
from ksql.exec.operators.keys import unpack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import SessionWindows
from ksql.exec.operators.suppress import FinalProcessor
from ksql.exec.operators.timers import Timers
from ksql.exec.operators.windows import Windows
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import COUNT, FUSSY, SUM, Log, contents, record, slots
from tests.unit.spark.task.test_pages import DictBackend

KEEPING = 1_000_000


def tumbling(*functions, size=10, grace=0, advance=None, keep=KEEPING, order=bytes, generations=()):
    folds = compile_folds(slots(*functions), generations)
    return FinalProcessor(folds, Windows(size, advance or size, grace, size + grace + keep), order)


def sessions(*functions, gap=10, grace=0, keep=KEEPING, order=bytes):
    folds = compile_folds(slots(*functions))
    windows = SessionWindows(gap, grace, gap + grace + keep)
    return SessionProcessor(folds, windows, None, False, len(functions), order)


def run(processor, batches, store=None, log=None):
    store = MemoryStore() if store is None else store
    log = Log() if log is None else log
    return [[each.row for each in processor.process(batch, store, log)] for batch in batches]


def at(*times, key="a"):
    return [record(key, (), time, offset) for offset, time in enumerate(times)]


# --- tumbling and hopping


def test_a_window_is_emitted_once_when_stream_time_reaches_its_end():
    assert run(tumbling(COUNT), [at(1, 5, 9), at(10), at(11, 19), at(20, 25)]) == [
        [],
        [("a", 3, 9, 0, 10)],
        [],
        [("a", 3, 19, 10, 20)],
    ]


def test_grace_waits_and_counts_what_comes_late():
    log = Log()
    [out] = run(tumbling(COUNT, grace=5), [at(1, 14, 9, 15, 8)], log=log)
    assert out == [("a", 2, 9, 0, 10)]
    assert log == [("aggregate", "late record for the window starting at 0", ("a",))]
    assert log[0][1].behind_ms == 15 - 8


def test_another_groups_record_closes_windows_too():
    assert run(tumbling(COUNT), [[*at(1), *at(10, key="b")]]) == [[("a", 1, 1, 0, 10)]]


def test_a_late_record_closes_nothing():
    assert run(tumbling(COUNT), [at(10, 3), at(20)]) == [[], [("a", 1, 10, 10, 20)]]


def test_windows_leave_by_start_then_by_the_order_of_their_groups():
    backwards = tumbling(COUNT, order=lambda key: bytes([255 - ord(unpack(key)[0])]))
    batch = [*at(11, 1, key="a"), *at(2, key="b")]
    assert run(backwards, [[*at(1, key="a"), *at(2, key="b"), *at(11, key="a"), *at(50)]]) == [
        [("b", 1, 2, 0, 10), ("a", 1, 1, 0, 10), ("a", 1, 11, 10, 20)]
    ]
    assert run(backwards, [batch]) == [[]]


def test_hopping_windows_close_one_after_the_other():
    assert run(tumbling(COUNT, advance=5), [at(7, 10, 15, 99)]) == [
        [
            ("a", 1, 7, 0, 10),
            ("a", 2, 10, 5, 15),
            ("a", 2, 15, 10, 20),
            ("a", 1, 15, 15, 25),
        ]
    ]


def test_windows_beyond_the_retention_are_logged_not_emitted():
    log = Log()
    processor = tumbling(COUNT, keep=0)
    assert run(processor, [at(1), at(10)], log=log) == [[], [("a", 1, 1, 0, 10)]]
    assert run(processor, [at(1), at(25)], log=log) == [[], []]
    [(_, text, _)] = log
    assert text.endswith("beyond its RETENTION: the window starting at 0")


def test_coordinates_and_headers_are_those_of_the_closing_record():
    store, log = MemoryStore(), Log()
    closing = record("b", (), 10, 7, headers=[("h", b"x")], topic=1, partition=2)
    [out] = tumbling(COUNT).process([*at(1), closing], store, log)
    assert (out.topic, out.partition, out.offset, out.headers) == (1, 2, 7, [("h", b"x")])
    assert (unpack(out.key), out.timestamp, out.old) == (["a"], 1, None)


def test_a_record_that_fails_makes_no_window():
    log = Log()
    batch = [record("a", (13,), 1, 0), record("b", (1,), 2, 1), record("b", (13,), 3, 2)]
    assert run(tumbling(FUSSY), [batch, [record("b", (2,), 10)]], log=log) == [
        [],
        [("b", 1, 2, 0, 10)],
    ]
    assert len(log) == 2


def test_a_longer_grace_opens_no_window_again():
    store = MemoryStore()
    run(tumbling(COUNT), [at(1, 10)], store)
    assert run(tumbling(COUNT, grace=50, keep=KEEPING - 50), [at(2, 80)], store) == [
        [("a", 1, 10, 10, 20)]
    ]


def test_an_upgrade_appends_an_aggregate_to_open_windows():
    store = MemoryStore()
    run(tumbling(COUNT), [at(1)], store)
    added = compile_folds([Slot(0, COUNT, ()), Slot(1, SUM, (0,))], (0, 1))
    longer = FinalProcessor(added, Windows(10, 10, 0, KEEPING), bytes)
    assert run(longer, [[record("a", (7,), 2)], [record("a", (1,), 10)]], store) == [
        [],
        [("a", 2, 7, 2, 0, 10)],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("processor", [tumbling(COUNT), sessions(COUNT, keep=0)])
def test_the_state_holds_what_is_open(processor):
    store = MemoryStore()
    for time in range(0, 300_000, 100):
        run(processor, [at(time, time + 1, key=str(time % 7))], store)
    held = sum(map(len, contents(store).values()))
    assert held < 20 or (isinstance(processor, SessionProcessor) and held < 1500)


# --- sessions


def test_a_session_is_emitted_once_when_gap_and_grace_have_passed():
    assert run(sessions(COUNT), [at(0, 8, 5), at(18), at(28), at(39)]) == [
        [],
        [],
        [],
        [("a", 5, 28, 0, 28)],
    ]
    assert run(sessions(COUNT, grace=5), [at(0), at(15, key="b"), at(16, key="b")]) == [
        [],
        [],
        [("a", 1, 0, 0, 0)],
    ]


def test_sessions_leave_by_end_start_and_group():
    backwards = sessions(COUNT, order=lambda key: bytes([255 - ord(unpack(key)[0])]))
    batch = [*at(5, key="c"), *at(3, 5, key="a"), *at(5, key="b"), *at(99)]
    assert run(backwards, [batch]) == [[("a", 2, 5, 3, 5), ("c", 1, 5, 5, 5), ("b", 1, 5, 5, 5)]]


def test_merged_sessions_are_emitted_as_one():
    assert run(sessions(COUNT, grace=50), [at(0), at(20), at(10), at(90)]) == [
        [],
        [],
        [],
        [("a", 3, 20, 0, 20)],
    ]


def test_a_session_that_was_emitted_may_grow_and_is_emitted_again():
    out = run(sessions(COUNT), [[*at(0), *at(11, key="b"), *at(5), *at(40)]])
    assert out == [[("a", 1, 0, 0, 0), ("a", 2, 5, 0, 5), ("b", 1, 11, 11, 11)]]


def test_sessions_beyond_the_retention_are_logged_not_emitted():
    """They are forgotten by segment, of a minute at least."""
    log, store = Log(), MemoryStore()
    processor = sessions(COUNT, keep=0)
    assert run(processor, [at(0), at(59_999)], store, log) == [[], [("a", 1, 0, 0, 0)]]
    assert log == []
    assert run(processor, [at(200_000), at(200_015)], store, log) == [
        [],
        [("a", 1, 200_000, 200_000, 200_000)],
    ]
    [(_, text, _)] = log
    assert text.endswith("beyond its RETENTION: the session from 59999 to 59999")


# --- any of them


entries = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 120), st.integers(0, 20)), max_size=50
)
small = st.integers(0, 40)
processors = st.builds(
    lambda size, grace, advance, keep: tumbling(
        FUSSY, size=size, grace=grace, advance=min(size, advance), keep=keep
    ),
    st.integers(1, 30),
    small,
    st.integers(1, 30),
    small,
) | st.builds(
    lambda gap, grace, keep: sessions(FUSSY, gap=gap, grace=grace, keep=keep),
    st.integers(1, 30),
    small,
    small,
)


@given(entries, processors, st.lists(st.integers(1, 20)), st.booleans())
def test_results_do_not_depend_on_how_batches_are_cut(entries, processor, lengths, paged):
    records = [record(key, (value,), time, n) for n, (key, time, value) in enumerate(entries)]
    log, cut_log = Log(), Log()
    [whole] = run(processor, [records], log=log)
    backend, memory = DictBackend(), MemoryStore()
    cut, sizes = [], iter(lengths)
    while records:
        size = next(sizes, len(records))
        store = PagedStore(backend) if paged else memory
        cut += run(processor, [records[:size]], store, cut_log)[0]
        if paged:
            store.flush()
        records = records[size:]
    assert cut == whole
    assert cut_log == log


@given(entries, st.integers(1, 30), small, st.integers(1, 30))
def test_the_results_are_the_last_ones_of_every_change(entries, size, grace, advance):
    records = [record(key, (value,), time, n) for n, (key, time, value) in enumerate(entries)]
    records.append(record("z", (0,), 10_000, len(records)))
    final = tumbling(SUM, size=size, grace=grace, advance=min(size, advance))
    every = AggregateProcessor(final.folds, final.windows, None, False, False)
    [changes] = run(every, [records])
    last = {(row[0], row[-2]): row for row in changes if row[0] != "z"}
    [out] = run(final, [records])
    assert sorted(out, key=repr) == sorted(last.values(), key=repr)


@given(entries, st.integers(1, 30))
def test_sessions_are_emitted_as_they_end_up(entries, gap):
    records = [record(key, (value,), time, n) for n, (key, time, value) in enumerate(entries)]
    closing = sessions(SUM, gap=gap, grace=1000)
    every = SessionProcessor(closing.folds, closing.windows, None, False, 1)
    changes = every.process(records, MemoryStore(), Log())
    last = {}
    for change in changes:
        row = change.row or change.old or ()
        place = (unpack(change.key)[0], *row[-2:])
        last[place] = change.row
    [out] = run(closing, [[*records, record("z", (0,), 10_000, len(records))]])
    assert sorted(out) == sorted(row for row in last.values() if row is not None)


# --- the index


def test_keys_are_found_when_their_time_comes():
    store = MemoryStore()
    due = Timers.read(store, 10, 0)
    for time in (25, 3, 14):
        due.add(time, b"%d" % time)
    due.write(0)
    again = Timers.read(store, 1, 0)  # another length: the state keeps its own
    assert sorted(again.upto(9)) == [b"3"]
    assert sorted(again.upto(15)) == [b"14", b"3"]
    again.remove(14, b"14")
    again.remove(99, b"unknown")
    assert sorted(again.upto(99)) == [b"25", b"3"]
    again.write(20)
    assert list(Timers.read(store, 10, 0).upto(99)) == [b"25"]


class Scanned(MemoryStore):
    def __init__(self):
        super().__init__()
        self.spaces = []

    def scan(self, space):
        self.spaces.append(space)
        return super().scan(space)


def test_a_batch_that_closes_nothing_looks_through_nothing():
    for processor in (tumbling(COUNT, grace=1000), sessions(COUNT, gap=100, grace=1000)):
        store = Scanned()
        run(processor, [at(*range(0, 900, 3), key=key) for key in "abc"], store)
        assert store.spaces == []
        out = run(processor, [at(2500)], store)
        assert len(list(chain(*out))) in (3, 270)
        assert store.spaces
