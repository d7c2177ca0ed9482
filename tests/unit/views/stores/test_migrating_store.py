"""A store of an earlier format that serves while it is copied: what is read, written, carried."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest import mock

import pytest

from ksql.core.records import Offset
from ksql.views.stores.base import Stored, StoreDamaged, StoredRow, StoreFailed
from ksql.views.stores.formats import UNKNOWN_TIME
from ksql.views.stores.migrating_store import MigratingStore, StoreCopy
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import Rocks
from ksql.views.stores.store_paths import copy_of, discard_copy
from ksql.views.stores.txn import TxnStore
from ksql.views.stores.write_batch import coalesced
from tests.stored.plain_store import HOUR_MS, ROWS, WINDOWS, PlainStore, sample
from tests.unit.views.stores.support import apply, spoiled_plain_store


@pytest.fixture
def path(tmp_path):
    return sample("txn_rocksdb", tmp_path / "0")


@pytest.fixture
def opened(path, budget):
    """Opens the store as one that is upgraded; what is open at the end is closed."""
    stores: list[Any] = []

    def open_():
        for each in stores:
            each.close()
        stores.append(MigratingStore.open(path, budget))
        return stores[-1]

    yield open_
    for each in stores:
        each.close()


def copied(path, budget):
    """The rows of the copy, of a store that is closed."""
    copy = TxnStore.open(copy_of(path), budget)
    rows, position = list(copy.scan()), copy.position()
    copy.close()
    return rows, position


def step(store, most_rows):
    """Copy a slice of so many rows."""
    usual = StoreCopy.step
    with mock.patch.object(StoreCopy, "step", lambda copy: usual(copy, most_rows)):
        return store.step()


def complete(store, most_rows=2):
    assert not all(step(store, most_rows) for _ in range(1000))
    assert store.complete


def test_the_old_store_answers_without_times(opened):
    store = opened()
    assert list(store.scan()) == [StoredRow(*row, UNKNOWN_TIME) for row in ROWS]
    assert store.get(b"key1") == Stored(b"value1", UNKNOWN_TIME)
    assert (store.position(), store.clock(), store.transactional) == (5, None, True)
    store.put([(b"key1", b"new", 70)])
    assert store.get(b"key1") == Stored(b"new", UNKNOWN_TIME)  # as after the commit
    assert store.committed().get(b"key1") == Stored(b"value1", UNKNOWN_TIME)
    store.commit(Offset(6))
    assert store.committed().get(b"key1") == Stored(b"new", UNKNOWN_TIME)


def test_concurrent_writes_go_to_both_stores(opened, path, budget):
    store = opened()
    assert step(store, 2) == 2  # key0 and key1
    apply(store, [(b"key0", b"new", 70), (b"key4", b"new", 71), (b"key3", None, 72)], 8)
    complete(store)
    apply(store, [(b"key1", None, 73), (b"key9", b"new", 74)], 10)
    assert store.done == 4  # key3 was gone when it was its turn
    store.close()
    kept = [
        StoredRow(b"key0", b"new", 70),
        StoredRow(b"key2", b"value2", UNKNOWN_TIME),
        StoredRow(b"key4", b"new", 71),
        StoredRow(b"key9", b"new", 74),
    ]
    assert copied(path, budget) == (kept, 10)


@pytest.mark.parametrize("before", [False, True])
def test_the_copy_knows_which_windows_are_hidden(opened, path, budget, before):
    if before:  # this version has upgraded it for a while, and then gave its copy up
        store = opened()
        store.commit(Offset(6), 9_000, 5)
        store.close()
        discard_copy(path)
    store = opened()
    complete(store)
    if not before:
        store.commit(Offset(6), 9_000, 5)
    assert (store.hidden_from(), store.clock()) == (5, 9_000)
    store.close()
    copy = TxnStore.open(copy_of(path), budget)
    assert (copy.hidden_from(), copy.clock()) == (5, 9_000)
    copy.close()


def test_a_time_does_not_give_way_to_an_unknown_one(opened, path, budget):
    store = opened()
    apply(store, [(b"key4", b"value4", 99)], 6)
    complete(store)
    store.close()
    assert copied(path, budget)[0][-1] == StoredRow(b"key4", b"value4", 99)


def test_the_version_that_wrote_it_can_continue_with_it(opened, path):
    store = opened()
    apply(store, [(b"key1", b"new", 70)], 6)
    store.close()
    plain = PlainStore(path)
    assert plain._db.get(b"\x01key1") == b"new"
    assert plain._db.get(b"\x00position") == (6).to_bytes(8, "big")
    plain.close()


def test_a_copy_is_continued_where_it_was(opened, path, budget):
    store = opened()
    step(store, 3)
    store = opened()
    assert store.done == 3
    assert step(store, 10) == 2
    complete(store)
    store.close()
    assert copied(path, budget)[0] == [StoredRow(*row, UNKNOWN_TIME) for row in ROWS]


def test_a_copy_that_another_version_left_behind_is_recreated(opened, path, budget):
    store = opened()
    complete(store)
    store.close()
    plain = PlainStore(path)
    plain.write([(b"key0", None), (b"key1", b"later")], position=9)
    plain.close()
    store = opened()
    assert (store.complete, store.done) == (False, 0)
    complete(store)
    store.close()
    expected = [StoredRow(key, b"later" if key == b"key1" else value, -1) for key, value in ROWS]
    assert copied(path, budget) == (expected[1:], 9)


def test_a_damaged_copy_is_recreated(opened, path, budget):
    store = opened()
    complete(store)
    store.close()
    (copy_of(path) / "CURRENT").write_text("nonsense")
    store = opened()
    assert not store.complete
    complete(store)


def test_damage_of_the_old_store_is_its_own(tmp_path, budget):
    store = MigratingStore.open(spoiled_plain_store(tmp_path / "0"), budget)
    with pytest.raises(StoreDamaged):
        list(store.scan())
    assert store.step() == 0
    assert "checksum" in store.damage
    assert store.given_up == store.damage
    store.close()


def test_a_copy_that_cannot_be_written_is_given_up_and_the_store_continues(
    opened, path, monkeypatch
):
    store = opened()
    step(store, 2)
    real = Rocks.apply

    def full(rocks, batch, logged):
        if rocks._path == copy_of(path):
            raise StoreFailed(str(path), "No space left on device", full=True)
        real(rocks, batch, logged)

    monkeypatch.setattr(Rocks, "apply", full)
    apply(store, [(b"key1", b"new", 70)], 6)
    assert store.given_up.startswith("the disk of the store")
    assert (store.step(), store.complete) == (0, False)
    assert not copy_of(path).exists()
    apply(store, [(b"key2", b"new", 71)], 7)
    assert store.get(b"key2") == Stored(b"new", UNKNOWN_TIME)


def test_uncommitted_bytes_are_those_of_both(opened):
    store = opened()
    store.put([(b"k", b"v" * 1_000, 1)])
    assert store.uncommitted_bytes > 2_000


def test_an_emptied_store_has_a_whole_copy_of_nothing(opened, path, budget):
    store = opened()
    assert not store.recover(Offset(6))  # the topic begins behind what was read
    assert store.complete
    apply(store, [(b"a", b"1", 70)], 7)
    store.close()
    assert copied(path, budget) == ([StoredRow(b"a", b"1", 70)], 7)


def test_uncommitted_rows_are_discarded_from_both_stores(opened, path, budget):
    store = opened()
    complete(store)
    store.put([(b"a", b"1", 70)])
    assert store.recover(Offset(0))
    store.commit(Offset(6))
    assert store.get(b"a") is None
    store.close()
    assert copied(path, budget) == ([StoredRow(*row, UNKNOWN_TIME) for row in ROWS], 6)


def test_a_store_of_no_certain_offset_has_nothing_to_keep(tmp_path, budget):
    assert MigratingStore.open(sample("killed", tmp_path / "0"), budget) is None


def test_windows_keep_their_clock_and_are_forgotten_in_both(tmp_path, budget):
    path = sample("windows", tmp_path / "0")
    migrating = MigratingStore.open(path, budget)
    store = RetentionStore(migrating, HOUR_MS)
    assert [row.value for row in store.scan()] == [b"value2", b"value2"]
    later = WINDOWS[0][0][:-8] + (4 * HOUR_MS).to_bytes(8, "big")
    store.put([(later, b"later", 70)])
    assert not all(store.tidy() for _ in range(1000))
    store.commit(Offset(7))
    complete(migrating)
    store.close()
    copy = TxnStore.open(copy_of(path), budget)
    assert (list(copy.scan()), copy.clock()) == ([(later, b"later", 70)], 4 * HOUR_MS)
    copy.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_copy_has_the_rows_of_the_store_after_any_failure(tmp_path, budget, seed):
    """Random writes, slices, restarts and rollbacks, against a dictionary."""
    random, path, position = Random(seed), tmp_path / "0", 1
    rows: dict[bytes, tuple[bytes | None, int]] = {
        b"%03d" % n: (b"v%d" % n, UNKNOWN_TIME) for n in range(random.randrange(60))
    }
    plain = PlainStore(path)
    plain.write([(key, value) for key, (value, _) in rows.items()], position=1)
    plain.close()
    store = MigratingStore.open(path, budget)
    for _ in range(40):
        match random.randrange(5):
            case 0:
                step(store, random.randrange(1, 12))
            case 1:
                store.close()
                store = MigratingStore.open(path, budget)
            case 2:
                store.put([(b"%03d" % random.randrange(60), b"lost", 5)])
                store.recover(Offset(0))
            case _:
                position += 3
                changes = [
                    (b"%03d" % random.randrange(80), random.choice([None, b"n"]), position)
                    for _ in range(random.randrange(8))
                ]
                for key, value, time in coalesced(changes).values():
                    rows[key] = (value, time)
                apply(store, changes, position)
    expected = {key: row for key, row in rows.items() if row[0] is not None}
    assert {row.key: row.value for row in store.scan()} == {k: v for k, (v, _) in expected.items()}
    complete(store, 7)
    store.close()
    copied_rows, at = copied(path, budget)
    assert ({row.key: (row.value, row.timestamp) for row in copied_rows}, at) == (
        expected,
        position,
    )
