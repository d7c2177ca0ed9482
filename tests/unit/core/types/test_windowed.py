from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types.windowed import WindowedKeys, all_kept_by, kept_by, session_key, window_key

TIMES = st.integers(0, 2**62)


def test_the_key_layouts_are_those_of_the_topics():
    assert window_key(b"k", 258) == b"k" + bytes([0, 0, 0, 0, 0, 0, 1, 2])
    assert session_key(b"k", start=1, end=2) == b"k" + bytes(7) + b"\2" + bytes(7) + b"\1"


@given(st.binary(), TIMES, st.integers(1, 2**60))
def test_a_time_windows_key_is_split_into_what_it_was_made_of(key, start, size_ms):
    codec, bounds = WindowedKeys(size_ms), (start, start + size_ms)
    assert codec.join(key, bounds) == window_key(key, start)
    assert codec.split(codec.join(key, bounds)) == (key, bounds)
    assert len(codec.join(key, bounds)) == len(key) + codec.suffix_bytes


@given(st.binary(), TIMES, TIMES)
def test_a_sessions_too(key, start, end):
    codec = WindowedKeys(None)
    assert codec.join(key, (start, end)) == session_key(key, start, end)
    assert codec.split(codec.join(key, (start, end))) == (key, (start, end))
    assert len(codec.join(key, (start, end))) == len(key) + codec.suffix_bytes


@pytest.mark.parametrize(
    ("key", "session", "time"),
    [(window_key(b"k", 7), False, 7), (session_key(b"k", 3, 9), True, 9)],
)
def test_the_time_that_decides_how_long_a_window_is_kept(key, session, time):
    assert kept_by(key, session=session) == time
    assert all_kept_by([key, key], session=session) == [time, time]
