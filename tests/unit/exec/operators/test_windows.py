from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.windows import Clock, Windows

times = st.integers(0, 10_000_000)


@st.composite
def window_clauses(draw):
    size = draw(st.integers(1, 500_000))
    advance = draw(st.integers(1, size))
    grace = draw(st.integers(0, 500_000))
    retention = size + grace + draw(st.integers(0, 500_000))
    return Windows(size, advance, grace, retention)


few_windows = window_clauses().filter(lambda w: w.size_ms // w.advance_ms < 50)


@given(few_windows, times)
def test_the_windows_of_a_time_are_those_that_hold_it(windows, time):
    starts = list(windows.starts(time))
    assert starts == sorted(set(starts))
    assert all(start % windows.advance_ms == 0 for start in starts)
    assert all(start <= time < start + windows.size_ms for start in starts)
    first = time // windows.advance_ms * windows.advance_ms
    assert starts[-1:] == ([first] if first <= time < first + windows.size_ms else [])
    expected = [
        start
        for start in range(first, -1, -windows.advance_ms)
        if start <= time < start + windows.size_ms
    ]
    assert starts == expected[::-1]


def test_windows_do_not_begin_before_the_epoch():
    assert list(Windows(10, 3, 0, 10).starts(4)) == [0, 3]
    assert list(Windows(10, 10, 0, 10).starts(0)) == [0]


def test_a_window_closes_when_its_end_and_grace_are_reached():
    clock = Clock(Windows(10, 10, 5, 15))
    assert not clock.is_late(0)
    clock.advance(14)
    assert not clock.is_late(0)
    clock.advance(15)
    assert clock.is_late(0)
    assert not clock.is_late(10)
    clock.advance(3)
    assert clock.stream_time == 15


@given(few_windows, st.lists(times, max_size=20))
def test_only_windows_that_no_record_can_reach_are_forgotten(windows, seen):
    store = MemoryStore()
    held = {}
    for place, time in enumerate(seen):
        clock = Clock.read(store, windows)
        clock.advance(time)
        for start in windows.starts(time):
            if not clock.is_late(start):
                space = clock.space(start)
                held[start] = space
                store.put(space, str(start).encode(), start)
        clock.write(store)
        again = Clock.read(store, windows)
        assert again.stream_time == max(seen[: place + 1])
        for start, space in held.items():
            if not again.is_late(start):
                assert store.get(space, str(start).encode()) == start
            if start + windows.size_ms + windows.retention_ms + windows.segment_ms < (
                again.stream_time
            ):
                assert store.get(space, str(start).encode()) is None


def test_a_new_clock_has_seen_nothing():
    clock = Clock.read(MemoryStore(), Windows(10, 10, 0, 10))
    assert (clock.stream_time, clock.segments) == (-1, set())
