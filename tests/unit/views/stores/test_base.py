"""What every store does, on each of them; and a model-based check that they agree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.core.records import Offset
from ksql.views.stores.base import StoreClosed, Stored, StoredRow, StoreFailed, after, resumed
from ksql.views.stores.rocks import Rocks
from ksql.views.stores.store_types import TYPES, open_store
from tests.examples import examples
from tests.unit.views.stores.support import apply, prefixed


def test_an_empty_store_has_neither_rows_nor_a_position(store):
    assert store.get(b"a") is None
    assert list(store.scan()) == []
    assert store.position() is None


def test_a_commit_is_read_back_with_its_timestamps_and_position(store):
    apply(store, [(b"a", b"1", 10), (b"b", b"", -5), (b"", b"no key", 2**62)], 7)
    assert store.get(b"a") == Stored(b"1", 10)
    assert list(store.scan()) == [
        StoredRow(b"", b"no key", 2**62),
        StoredRow(b"a", b"1", 10),
        StoredRow(b"b", b"", -5),
    ]
    assert store.position() == 7


def test_the_last_change_of_a_key_counts_and_none_deletes(store):
    apply(store, [(b"a", b"1", 1), (b"b", b"1", 1), (b"a", b"2", 2)], 3)
    apply(store, [(b"b", None, 4), (b"unknown", None, 4)], 5)
    assert list(store.scan()) == [StoredRow(b"a", b"2", 2)]


def test_a_commit_without_changes_moves_the_position(store):
    apply(store, [], 3)
    apply(store, [], 3)
    assert store.position() == 3


def test_a_position_never_goes_back(store):
    apply(store, [], 3)
    with pytest.raises(ValueError, match="behind"):
        store.commit(Offset(2))
    assert store.position() == 3


def test_changes_that_fail_to_come_change_nothing(store):
    apply(store, [(b"a", b"1", 1)], 1)

    def crashing():
        yield b"a", b"2", 2
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError):
        apply(store, crashing(), 2)
    assert (store.get(b"a"), store.position()) == (Stored(b"1", 1), 1)


def test_ranges_are_half_open_and_in_byte_order(store):
    keys = [b"", b"\x00", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff", b"\xff\xffa"]
    apply(store, [(key, key, 0) for key in reversed(keys)], 1)

    def keys_in(*bounds):
        return [row.key for row in store.range(*bounds)]

    assert keys_in() == keys
    assert keys_in(b"a", b"b") == [b"a", b"a\x00", b"ab"]
    assert keys_in(None, b"a") == [b"", b"\x00"]
    assert keys_in(b"b", None) == keys[5:]
    assert keys_in(b"c", b"b") == []
    assert [row.key for row in prefixed(store, b"a")] == [b"a", b"a\x00", b"ab"]
    assert [row.key for row in prefixed(store, b"\xff")] == keys[6:]
    assert [row.key for row in prefixed(store, b"\xff\xff")] == keys[7:]
    assert [row.key for row in prefixed(store, b"")] == keys


def test_an_iterator_shows_the_rows_as_they_were(store):
    apply(store, [(b"a", b"1", 1), (b"b", b"1", 1)], 1)
    rows = store.scan()
    apply(store, [(b"a", None, 2), (b"b", b"2", 2), (b"c", b"2", 2)], 2)
    assert list(rows) == [StoredRow(b"a", b"1", 1), StoredRow(b"b", b"1", 1)]


def test_clear_forgets_rows_and_position(store):
    apply(store, [(b"", b"1", 1), (b"\xff" * 9, b"1", 1)], 9)
    store.clear()
    assert list(store.scan()) == []
    assert store.position() is None
    apply(store, [(b"a", b"1", 1)], 1)
    assert [row.key for row in store.scan()] == [b"a"]


def test_nothing_works_after_close(store):
    store.close()
    store.close()
    for use in (
        lambda: store.get(b"a"),
        store.scan,
        lambda: prefixed(store, b"a"),
        store.position,
        lambda: store.put([]),
        lambda: store.commit(Offset(1)),
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
        (11, 0, 10, 0, False),  # the topic was made again
        (3, 4, 10, 4, False),  # deletions were missed
    ],
)
def test_where_a_store_resumes(store, position, begin, end, expected, kept):
    if position is not None:
        apply(store, [(b"a", b"1", 1)], position)
    assert resumed(store, Offset(begin), Offset(end)) == expected
    assert (store.get(b"a") is not None) == kept


def test_recovery_discards_what_is_not_committed(store):
    apply(store, [(b"a", b"1", 1)], 1)
    store.put([(b"a", b"2", 2), (b"b", b"2", 2)])
    assert store.recover(Offset(0)) == store.transactional
    left = [StoredRow(b"a", b"1", 1)] if store.transactional else []
    assert list(store.scan()) == left
    assert store.position() == (1 if store.transactional else None)
    apply(store, [(b"c", b"3", 3)], 3)
    assert store.recover(Offset(3))
    assert store.get(b"c") == Stored(b"3", 3)
    assert not store.recover(Offset(4))
    assert list(store.scan()) == []


def test_the_owner_reads_what_is_put_and_others_may_ask_for_what_is_committed(store):
    apply(store, [(b"a", b"1", 1), (b"b", b"1", 1)], 1)
    store.put([(b"a", b"2", 2), (b"b", None, 2), (b"c", b"2", 2)])
    new = [StoredRow(b"a", b"2", 2), StoredRow(b"c", b"2", 2)]
    old = [StoredRow(b"a", b"1", 1), StoredRow(b"b", b"1", 1)] if store.transactional else new
    assert (store.get(b"b"), store.get(b"c")) == (None, Stored(b"2", 2))
    assert list(store.scan()) == new
    assert store.position() == 1
    committed = store.committed()
    assert list(committed.scan()) == old
    assert committed.get(b"a") == Stored(*old[0][1:])
    assert [row.key for row in prefixed(committed, b"b")] == [
        row.key for row in old if row.key == b"b"
    ]
    assert (store.uncommitted_bytes > 0) == store.transactional
    store.commit(Offset(2))
    assert list(committed.scan()) == new
    assert store.uncommitted_bytes == 0


def test_its_size_grows_with_its_rows(store):
    before = store.size()
    apply(store, [(b"%d" % number, b"x" * 1000, 1) for number in range(500)], 500)
    assert store.size().bytes - before.bytes > 400_000
    assert 500 <= store.size().rows - before.rows < 510  # RocksDB counts the marks, too
    store.close()
    with pytest.raises(StoreClosed):
        store.size()


def test_a_commit_that_fails_leaves_the_batch_open(tmp_path, budget, monkeypatch):
    store = open_store("txn_rocksdb", tmp_path / "s", budget)
    apply(store, [(b"a", b"1", 1)], 1)
    store.put([(b"a", b"2", 2)])

    def full(*_args, **_more):
        raise StoreFailed("s", "No space left", full=True)

    with monkeypatch.context() as patched:
        patched.setattr(Rocks, "apply", full)
        with pytest.raises(StoreFailed, match="is full"):
            store.commit(Offset(2))
    assert (store.get(b"a"), store.position()) == (Stored(b"2", 2), 1)
    assert store.committed().get(b"a") == Stored(b"1", 1)
    store.commit(Offset(2))
    assert store.committed().get(b"a") == Stored(b"2", 2)
    store.close()


def test_the_size_of_the_batch_follows_the_last_changes(tmp_path, budget):
    store = open_store("txn_rocksdb", tmp_path / "s", budget)
    store.put([(b"%d" % n, b"v" * 100, 0) for n in range(100)])
    once = store.uncommitted_bytes
    assert 10_000 < once < 50_000
    for _ in range(10):
        store.put([(b"%d" % n, b"w" * 100, 0) for n in range(100)])
    assert store.uncommitted_bytes == once
    store.close()


@given(prefix=st.binary(max_size=4), key=st.binary(max_size=6))
def test_after_bounds_the_keys_of_a_prefix(prefix, key):
    bound = after(prefix)
    inside = prefix <= key and (bound is None or key < bound)
    assert inside == key.startswith(prefix)


_keys = st.sampled_from([b"", b"\x00", b"a", b"ab", b"b", b"\xff"])
_changes = st.tuples(_keys, st.none() | st.binary(max_size=3), st.integers(-(2**63), 2**63 - 1))
_puts = st.lists(_changes, max_size=5)
_steps = st.lists(st.none() | st.tuples(_puts, st.booleans()), max_size=8)


@settings(max_examples=examples(25), deadline=None)
@given(steps=_steps, lo=st.none() | _keys, hi=st.none() | _keys)
def test_all_types_agree(budget, steps, lo, hi):
    with tempfile.TemporaryDirectory() as directory:
        stores = [open_store(kind, Path(directory) / kind, budget) for kind in TYPES]
        try:
            for at, step in enumerate(steps):
                for store in stores:
                    if step is None:
                        store.clear()
                        continue
                    store.put(step[0])
                    if step[1]:
                        store.commit(Offset(at))
            ranges = [list(store.range(lo, hi)) for store in stores]
            assert ranges[0] == ranges[1] == ranges[2]
            assert len({store.position() for store in stores}) == 1
            for row in ranges[0]:
                assert all(store.get(row.key) == row[1:] for store in stores)
        finally:
            for store in stores:
                store.close()
