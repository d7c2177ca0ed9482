"""Rows between servers: whatever the pieces, they come out as they went in, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.cluster.replicas import frames
from ksql.views.stores.base import HiddenWindows, Stored, StoredRow

TIMES = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.builds(StoredRow, st.binary(max_size=9), st.binary(max_size=9), TIMES))


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(ROWS, st.integers(1, 40))
def test_rows_survive_any_cut(rows, size):
    data = b"".join(frames.rows(rows)) + frames.frame(frames.END)
    *parts, last = frames.frames(cut(data, size))
    assert [row for _, part in parts for row in frames.stored_rows(part)] == rows
    assert last == (frames.END, b"")


@given(st.lists(st.one_of(st.none(), st.builds(Stored, st.binary(max_size=9), TIMES))))
def test_answers_survive(answers):
    data = b"".join(frames.answers(answers)) + frames.frame(frames.END)
    *parts, _ = [part for _, part in frames.frames([data])]
    assert [each for part in parts for each in frames.stored_answers(part)] == answers


def test_pieces_are_bounded():
    rows = [StoredRow(b"%d" % number, bytes(1000), 0) for number in range(1000)]
    assert max(map(len, frames.rows(rows))) < frames.PIECE_BYTES + 2000


@given(ROWS, st.data())
def test_a_stream_that_is_cut_off_is_never_taken_for_whole(rows, data):
    whole = b"".join(frames.rows(rows)) + frames.frame(frames.END)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(frames.BrokenFrames, match="cannot be read"):
        list(frames.frames([whole[:length]]))


def test_the_end_says_how_far_the_copy_was():
    [(kind, data)] = frames.frames([frames.end(7)])
    assert (kind, frames.end_of(data)) == (frames.END, (7, None))
    assert data == b'{"seen":7}'
    assert frames.end_of(b"") == (None, None)  # of a server that does not say it
    assert frames.end(None) == frames.frame(frames.END)
    for bad in (b"{", b"{}", b"[]", b'{"seen":"x"}', b'{"seen":7,"hidden":[1]}'):
        with pytest.raises(frames.BrokenFrames, match="cannot be read"):
            frames.end_of(bad)


def test_the_end_says_which_windows_are_hidden_and_servers_of_before_can_read_it():
    hidden = HiddenWindows(-5, 9, 3_600_000)
    [(_, data)] = frames.frames([frames.end(7, hidden)])
    assert frames.end_of(data) == (7, hidden)
    assert json.loads(data)["seen"] == 7  # all that they look at


def test_a_failure_on_the_way_is_raised():
    stream = [frames.head({"accepted": True}), frames.failed("the disk is full")]
    with pytest.raises(frames.PeerFailed) as caught:
        list(frames.frames(stream))
    assert caught.value.detail == "the disk is full"


@pytest.mark.parametrize(
    "data", [b"\x01\x00", b"\x00" * 15 + b"\x09", b"\x00" * 12 + b"\x00\x00\x00\x09"]
)
def test_rows_that_are_cut_within_a_frame_are_refused(data):
    with pytest.raises(frames.BrokenFrames):
        frames.stored_rows(data)
    with pytest.raises(frames.BrokenFrames):
        frames.stored_answers(data)


def test_invalid_frames_are_refused():
    with pytest.raises(frames.BrokenFrames):
        list(frames.frames([b"<html>not found</html>"]))
