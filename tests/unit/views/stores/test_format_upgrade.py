"""The modes of an upgrade: what serves meanwhile, when the copy takes its place, what is left."""

from __future__ import annotations

import pytest

from ksql.views.stores.base import NewerStore, StoreDamaged, StoredRow
from ksql.views.stores.disk import DiskStore
from ksql.views.stores.format_upgrade import Upgrades
from ksql.views.stores.formats import UNKNOWN_TIME
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.migrating_store import MigratingStore
from ksql.views.stores.rocks import Rocks
from ksql.views.stores.store_paths import copy_of
from ksql.views.stores.store_types import TYPES, open_store
from ksql.views.stores.txn import TxnStore
from tests.stored.plain_store import ROWS, sample
from tests.unit.views.stores.support import apply, files_of, spoiled_plain_store

KEPT = [StoredRow(*row, UNKNOWN_TIME) for row in ROWS]
CLASSES = {"rocksdb": DiskStore, "txn_rocksdb": TxnStore}
BEFORE = ["offline", "roll_over"]


@pytest.fixture
def path(tmp_path):
    return sample("txn_rocksdb", tmp_path / "stores" / "0")


def listed(path):
    return sorted(each.name for each in path.parent.iterdir())


def worked(upgrades):
    while upgrades.busy:
        upgrades.work()


def ended(upgrades, path):
    """Close what is upgraded, as the end of a server does."""
    upgrades.leave(path)
    return Upgrades("in_place", upgrades._budget)


@pytest.mark.parametrize("mode", BEFORE)
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", CLASSES)
def test_before_serving(tmp_path, budget, mode, kind, name):
    path = sample(name, tmp_path / "stores" / "0")
    upgrades = Upgrades(mode, budget)
    assert upgrades.open(kind, path) is None
    assert upgrades.open(kind, path) is None  # asked again too early
    assert [str(state) for state in upgrades.states()] == ["partition 0 0%"]
    assert not upgrades.work()
    assert [str(state) for state in upgrades.states()] == ["partition 0 83%"]  # a guess
    assert upgrades.work()  # whole
    assert listed(path) == ["0", "0.new"]
    store = upgrades.open(kind, path)
    assert isinstance(store, CLASSES[kind])
    assert store.recover(0)
    assert (list(store.scan()), store.position()) == (KEPT, 5)
    assert (listed(path), upgrades.states(), upgrades.busy) == (["0"], [], False)
    store.close()


def test_in_place_the_second_start_changes_places(path, budget):
    first = Upgrades("in_place", budget)
    store = first.open("txn_rocksdb", path)
    assert isinstance(store, MigratingStore)
    apply(store, [(b"key0", b"new", 70)], 6)
    worked(first)
    apply(store, [(b"key1", b"new", 71)], 7)
    assert [str(state) for state in first.states()] == ["partition 0 100%"]
    first.leave(path)
    assert isinstance(first.open("txn_rocksdb", path), MigratingStore)  # no start: the same process
    second = ended(first, path)
    store = second.open("txn_rocksdb", path)
    assert isinstance(store, TxnStore)
    assert list(store.scan()) == [
        StoredRow(b"key0", b"new", 70),
        StoredRow(b"key1", b"new", 71),
        *KEPT[2:],
    ]
    assert (store.position(), listed(path), second.states()) == (7, ["0"], [])
    store.close()


def test_in_place_continues_until_it_is_whole(path, budget):
    first = Upgrades("in_place", budget)
    first.open("txn_rocksdb", path)
    second = ended(first, path)
    assert isinstance(second.open("txn_rocksdb", path), MigratingStore)
    worked(second)
    third = ended(second, path)
    store = third.open("txn_rocksdb", path)
    assert isinstance(store, TxnStore)
    store.close()


def test_upgrade_begun_in_place_is_finished_by_another_mode(path, budget):
    first = Upgrades("in_place", budget)
    apply(first.open("txn_rocksdb", path), [(b"key0", b"new", 70)], 6)
    first.leave(path)
    second = Upgrades("offline", budget)
    assert second.open("txn_rocksdb", path) is None
    worked(second)
    store = second.open("txn_rocksdb", path)
    assert list(store.scan()) == [StoredRow(b"key0", b"new", 70), *KEPT[1:]]
    store.close()


@pytest.mark.parametrize("mode", [*BEFORE, "in_place"])
def test_in_memory_needs_no_copy(path, budget, mode):
    upgrades = Upgrades(mode, budget)
    store = upgrades.open("in_memory", path)
    assert isinstance(store, MemoryStore)
    assert list(store.scan()) == KEPT
    assert (listed(path), upgrades.states()) == ([], [])


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_that_takes_another_type_meanwhile(path, budget, kind):
    upgrades = Upgrades("in_place", budget)
    upgrades.open("txn_rocksdb", path)
    worked(upgrades)
    upgrades.leave(path)
    store = upgrades.open(kind, path)
    assert list(store.scan()) == KEPT
    upgrades.leave(path)
    store.close()
    store = Upgrades("in_place", budget).open(kind, path)
    assert list(store.scan()) == ([] if kind == "in_memory" else KEPT)
    assert listed(path) == ([] if kind == "in_memory" else ["0"])
    store.close()


@pytest.mark.parametrize("mode", [*BEFORE, "in_place"])
def test_a_store_of_no_certain_offset_restarts(tmp_path, budget, mode, caplog):
    path = sample("killed", tmp_path / "stores" / "0")
    store = Upgrades(mode, budget).open("rocksdb", path)
    assert isinstance(store, DiskStore)
    assert (list(store.scan()), store.position(), listed(path)) == ([], None, ["0"])
    assert [r.message for r in caplog.records] == ["store_begins_anew"]
    store.close()


@pytest.mark.parametrize("mode", [*BEFORE, "in_place"])
def test_no_copy_is_begun_that_would_fill_the_disk(path, budget, mode):
    upgrades = Upgrades(mode, budget, free=lambda _path: 10)
    store = upgrades.open("txn_rocksdb", path)
    assert (store is None) == (mode != "in_place")
    [state] = upgrades.states()
    assert "more bytes, 10 are free" in state.failure
    assert listed(path) == ["0"]
    assert not upgrades.busy
    upgrades.leave(path)
    roomy = Upgrades("offline", budget)
    assert roomy.open("txn_rocksdb", path) is None
    worked(roomy)
    store = roomy.open("txn_rocksdb", path)
    assert list(store.scan()) == KEPT
    store.close()


@pytest.mark.parametrize("mode", [*BEFORE, "in_place"])
def test_a_whole_copy_needs_no_room(path, budget, mode):
    first = Upgrades("in_place", budget)
    first.open("txn_rocksdb", path)
    worked(first)
    first.leave(path)
    (path / "before.log").write_bytes(bytes(1 << 20))  # the old store is larger than its copy
    upgrades = Upgrades(mode, budget, free=lambda _path: 10)
    store = upgrades.open("txn_rocksdb", path)
    assert (list(store.scan()), listed(path), upgrades.states()) == (KEPT, ["0"], [])
    store.close()


def test_a_waiting_store_is_tried_again_when_there_is_room(path, budget):
    free = [10]
    upgrades = Upgrades("offline", budget, free=lambda _path: free[0])
    assert upgrades.open("txn_rocksdb", path) is None
    free[0] = 1 << 40
    assert upgrades.open("txn_rocksdb", path) is None
    assert [state.failure for state in upgrades.states()] == [""]
    worked(upgrades)
    upgrades.open("txn_rocksdb", path).close()


def test_damage_of_the_store_is_no_harm_once_its_copy_is_whole(path, budget):
    first = Upgrades("in_place", budget)
    first.open("txn_rocksdb", path)
    worked(first)
    first.leave(path)
    (path / "CURRENT").write_text("nonsense")
    store = Upgrades("in_place", budget).open("txn_rocksdb", path)
    assert (list(store.scan()), listed(path)) == (KEPT, ["0"])
    store.close()


def test_damage_that_is_found_while_it_serves(path, budget):
    upgrades = Upgrades("in_place", budget)
    store = upgrades.open("txn_rocksdb", path)
    assert not upgrades.rescued(path)
    worked(upgrades)
    files_of(store).damage = "Corruption"
    assert upgrades.rescued(path)
    store = upgrades.open("txn_rocksdb", path)
    assert (list(store.scan()), listed(path)) == (KEPT, ["0"])
    store.close()


@pytest.mark.parametrize("mode", BEFORE)
def test_damage_that_is_found_while_it_is_copied(tmp_path, budget, mode):
    path = spoiled_plain_store(tmp_path / "stores" / "0")
    upgrades = Upgrades(mode, budget)
    assert upgrades.open("txn_rocksdb", path) is None
    assert upgrades.work()  # has an outcome
    with pytest.raises(StoreDamaged, match="damaged"):
        upgrades.open("txn_rocksdb", path)
    assert upgrades.states() == []


def test_a_copy_of_a_store_that_needs_none_is_removed(tmp_path, budget):
    path = tmp_path / "stores" / "0"
    open_store("txn_rocksdb", path, budget).close()
    open_store("txn_rocksdb", copy_of(path), budget).close()
    Upgrades("offline", budget).open("txn_rocksdb", path).close()
    assert listed(path) == ["0"]


@pytest.mark.parametrize("mode", [*BEFORE, "in_place"])
def test_a_newer_store_is_left_alone(tmp_path, budget, mode):
    path = tmp_path / "stores" / "0"
    store = open_store("txn_rocksdb", path, budget)
    store.close()
    rocks = Rocks.open(path, budget, logged=True)
    rocks.write((), {"format": 9})
    rocks.close()
    with pytest.raises(NewerStore, match=f"{path} has format 9, this version reads up to 1"):
        Upgrades(mode, budget).open("txn_rocksdb", path)
    assert listed(path) == ["0"]


def test_the_log_shows_begin_and_end(path, budget, caplog):
    upgrades = Upgrades("offline", budget)
    upgrades.open("txn_rocksdb", path)
    worked(upgrades)
    upgrades.open("txn_rocksdb", path).close()
    assert [record.message for record in caplog.records] == [
        "store_upgrade_begins",
        "store_upgrade_whole",
        "store_upgraded",
    ]
    assert {record.store for record in caplog.records} == {str(path)}
