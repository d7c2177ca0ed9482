"""What every store does, on each of them; and a model-based check that they agree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.base.ids import Offset
from ksql.stores.base import StoreClosed, Stored, StoredRow, after, recover
from ksql.stores.disk import DiskStore
from ksql.stores.memory import MemoryStore


def test_an_empty_store_has_neither_rows_nor_a_position(store):
    assert store.get(b"a") is None
    assert list(store.scan()) == []
    assert store.position() is None


def test_a_commit_is_read_back_with_its_timestamps_and_position(store):
    store.commit([(b"a", b"1", 10), (b"b", b"", -5), (b"", b"no key", 2**62)], Offset(7))
    assert store.get(b"a") == Stored(b"1", 10)
    assert list(store.scan()) == [
        StoredRow(b"", b"no key", 2**62),
        StoredRow(b"a", b"1", 10),
        StoredRow(b"b", b"", -5),
    ]
    assert store.position() == 7


def test_the_last_change_of_a_key_counts_and_none_deletes(store):
    store.commit([(b"a", b"1", 1), (b"b", b"1", 1), (b"a", b"2", 2)], Offset(3))
    store.commit([(b"b", None, 4), (b"unknown", None, 4)], Offset(5))
    assert list(store.scan()) == [StoredRow(b"a", b"2", 2)]


def test_a_commit_without_changes_moves_the_position(store):
    store.commit([], Offset(3))
    store.commit([], Offset(3))
    assert store.position() == 3


def test_a_position_never_goes_back(store):
    store.commit([], Offset(3))
    with pytest.raises(ValueError, match="behind"):
        store.commit([(b"a", b"1", 1)], Offset(2))
    assert store.get(b"a") is None


def test_a_commit_that_fails_changes_nothing(store):
    store.commit([(b"a", b"1", 1)], Offset(1))

    def crashing():
        yield b"a", b"2", 2
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError):
        store.commit(crashing(), Offset(2))
    assert (store.get(b"a"), store.position()) == (Stored(b"1", 1), 1)


def test_ranges_are_half_open_and_in_byte_order(store):
    keys = [b"", b"\x00", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff", b"\xff\xffa"]
    store.commit([(key, key, 0) for key in reversed(keys)], Offset(1))

    def found(*bounds):
        return [row.key for row in store.range(*bounds)]

    assert found() == keys
    assert found(b"a", b"b") == [b"a", b"a\x00", b"ab"]
    assert found(None, b"a") == [b"", b"\x00"]
    assert found(b"b", None) == keys[5:]
    assert found(b"c", b"b") == []
    assert [row.key for row in store.prefix(b"a")] == [b"a", b"a\x00", b"ab"]
    assert [row.key for row in store.prefix(b"\xff")] == keys[6:]
    assert [row.key for row in store.prefix(b"\xff\xff")] == keys[7:]
    assert [row.key for row in store.prefix(b"")] == keys


def test_an_iterator_shows_the_rows_as_they_were(store):
    store.commit([(b"a", b"1", 1), (b"b", b"1", 1)], Offset(1))
    rows = store.scan()
    store.commit([(b"a", None, 2), (b"b", b"2", 2), (b"c", b"2", 2)], Offset(2))
    assert list(rows) == [StoredRow(b"a", b"1", 1), StoredRow(b"b", b"1", 1)]


def test_clear_forgets_rows_and_position(store):
    store.commit([(b"", b"1", 1), (b"\xff" * 9, b"1", 1)], Offset(9))
    store.clear()
    assert list(store.scan()) == []
    assert store.position() is None
    store.commit([(b"a", b"1", 1)], Offset(1))
    assert [row.key for row in store.scan()] == [b"a"]


def test_nothing_works_after_close(store):
    store.close()
    store.close()
    for use in (
        lambda: store.get(b"a"),
        store.scan,
        lambda: store.prefix(b"a"),
        store.position,
        lambda: store.commit([], Offset(1)),
        store.clear,
    ):
        with pytest.raises(StoreClosed):
            use()


@pytest.mark.parametrize(
    ("position", "begin", "end", "expected", "kept"),
    [
        (None, 0, 10, 0, False),
        (None, 4, 10, 4, False),
        (5, 0, 10, 5, True),
        (10, 0, 10, 10, True),
        (5, 5, 10, 5, True),
        (11, 0, 10, 0, False),  # the topic was made anew
        (3, 4, 10, 4, False),  # deletions were missed
    ],
)
def test_recover(store, position, begin, end, expected, kept):
    if position is not None:
        store.commit([(b"a", b"1", 1)], Offset(position))
    assert recover(store, Offset(begin), Offset(end)) == expected
    assert (store.get(b"a") is not None) == kept


@given(prefix=st.binary(max_size=4), key=st.binary(max_size=6))
def test_after_bounds_the_keys_of_a_prefix(prefix, key):
    bound = after(prefix)
    inside = prefix <= key and (bound is None or key < bound)
    assert inside == key.startswith(prefix)


_keys = st.sampled_from([b"", b"\x00", b"a", b"ab", b"b", b"\xff"])
_changes = st.tuples(_keys, st.none() | st.binary(max_size=3), st.integers(-(2**63), 2**63 - 1))
_steps = st.lists(st.none() | st.lists(_changes, max_size=5), max_size=8)


@settings(max_examples=25, deadline=None)
@given(steps=_steps, lo=st.none() | _keys, hi=st.none() | _keys)
def test_disk_and_memory_agree(budget, steps, lo, hi):
    memory = MemoryStore()
    with tempfile.TemporaryDirectory() as directory:
        disk = DiskStore.open(Path(directory) / "s", budget)
        try:
            for at, step in enumerate(steps):
                for store in (memory, disk):
                    if step is None:
                        store.clear()
                    else:
                        store.commit(step, Offset(at))
            assert list(disk.range(lo, hi)) == list(memory.range(lo, hi))
            assert disk.position() == memory.position()
        finally:
            disk.close()
