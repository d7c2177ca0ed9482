from __future__ import annotations

import pytest

from ksql.base.ids import Offset
from ksql.stores import windowed
from ksql.stores.windowed import Window


def put(store, keys):
    store.commit([(key, b"v", 1) for key in keys], Offset(len(keys)))


def test_the_key_layouts_are_those_of_the_topics():
    assert windowed.window_key(b"k", 258) == b"k" + bytes([0, 0, 0, 0, 0, 0, 1, 2])
    assert windowed.session_key(b"k", start=1, end=2) == b"k" + bytes(7) + b"\2" + bytes(7) + b"\1"


def test_all_windows_of_one_key_and_of_no_other(store):
    put(
        store,
        [
            windowed.window_key(key, start)
            for key in (b"1", b"10", b"", b"1\0")
            for start in (0, 5, 10**12)
        ],
    )
    assert list(windowed.windows(store, b"1")) == [
        Window(b"1", 0, None, b"v", 1),
        Window(b"1", 5, None, b"v", 1),
        Window(b"1", 10**12, None, b"v", 1),
    ]
    assert [w.start for w in windowed.windows(store, b"")] == [0, 5, 10**12]


@pytest.mark.parametrize("other", [bytes(n) for n in range(1, 20)] + [b"\0\0\0\0\1\0\0\0\0"])
def test_keys_that_go_on_as_a_time_does_are_told_apart(store, other):
    put(
        store,
        [windowed.window_key(b"k" + tail, start) for tail in (b"", other) for start in (0, 3)],
    )
    assert [(w.key, w.start) for w in windowed.windows(store, b"k")] == [(b"k", 0), (b"k", 3)]


def test_bounds_on_the_start_are_inclusive(store):
    put(store, [windowed.window_key(b"k", start) for start in range(0, 50, 10)])
    assert [w.start for w in windowed.windows(store, b"k", 10, 30)] == [10, 20, 30]
    assert [w.start for w in windowed.windows(store, b"k", 11, 29)] == [20]
    assert list(windowed.windows(store, b"none")) == []


def test_times_beyond_the_default_bound_are_found_when_asked_for(store):
    put(store, [windowed.window_key(b"k", 2**63 - 1), windowed.window_key(b"k", 2**48)])
    assert list(windowed.windows(store, b"k")) == []
    assert [w.start for w in windowed.windows(store, b"k", last=2**63 - 1)] == [2**48, 2**63 - 1]


def test_sessions_come_by_end_and_start(store):
    spans = [(0, 0), (1, 9), (4, 9), (20, 30)]
    put(store, [windowed.session_key(key, *span) for key in (b"k", b"kk") for span in spans])
    found = list(windowed.sessions(store, b"k"))
    assert [(w.start, w.end) for w in found] == spans
    assert {w.key for w in found} == {b"k"}
    assert [(w.start, w.end) for w in windowed.sessions(store, b"k", 9, 9)] == [(1, 9), (4, 9)]


def test_rows_of_a_whole_table_are_split(store):
    put(store, [windowed.window_key(b"a", 7), windowed.window_key(b"", 8)])
    assert {(w.key, w.start) for w in map(windowed.time_window, store.scan())} == {
        (b"a", 7),
        (b"", 8),
    }
    store.clear()
    put(store, [windowed.session_key(b"a", 1, 2)])
    (found,) = map(windowed.session, store.scan())
    assert found == Window(b"a", 1, 2, b"v", 1)
