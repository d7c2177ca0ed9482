"""A table's way from one type of store to another keeps its rows."""

from __future__ import annotations

import itertools

import pytest

from ksql.views.stores.base import StoredRow
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.store_types import TYPES, carry, open_store, store_type
from tests.unit.views.stores.support import apply

ROWS = [StoredRow(b"%04d" % n, b"v%d" % n, n) for n in range(100)]
ON_DISK = ("rocksdb", "txn_rocksdb")


def test_the_names_of_types_in_any_case():
    assert [store_type(name) for name in ("rocksDB", "TXN_ROCKSDB", "in_memory")] == list(TYPES)
    with pytest.raises(ValueError, match="papyrus"):
        store_type("papyrus")


@pytest.mark.parametrize(("before", "after"), list(itertools.product(ON_DISK, TYPES)))
def test_a_store_that_was_closed_is_opened_as_another_type(tmp_path, budget, before, after):
    store = open_store(before, tmp_path / "s", budget)
    apply(store, ROWS, 100)
    store.close()
    store = open_store(after, tmp_path / "s", budget)
    assert list(store.scan()) == ROWS
    assert store.position() == 100
    apply(store, [(b"0000", None, 101), (b"new", b"n", 101)], 101)
    assert len(list(store.scan())) == 100
    store.close()
    assert (tmp_path / "s").exists() == (after in ON_DISK)


@pytest.mark.parametrize("after", TYPES)
def test_store_without_certain_offset_is_not_adopted(tmp_path, budget, after):
    """A store that puts at once, and was not ended in order, may be ahead of its position."""
    store = open_store("rocksdb", tmp_path / "s", budget)
    apply(store, ROWS[:50], 50)
    store.put(ROWS[50:])
    store.close()
    store = open_store(after, tmp_path / "s", budget)
    assert not store.recover(0)
    assert list(store.scan()) == []
    assert store.position() is None
    store.close()


@pytest.mark.parametrize("after", ON_DISK)
def test_rows_in_memory_are_carried_to_the_disk(tmp_path, budget, after):
    old = MemoryStore()
    apply(old, ROWS, 100)
    new = open_store(after, tmp_path / "s", budget)
    carry(old, new)
    new.close()
    new = open_store(after, tmp_path / "s", budget)
    assert list(new.scan()) == ROWS
    assert new.position() == 100
    new.close()


def test_only_what_is_committed_is_carried_and_only_forward(tmp_path, budget):
    old, new = open_store("txn_rocksdb", tmp_path / "s", budget), MemoryStore()
    carry(old, new)
    assert new.position() is None
    apply(old, ROWS[:3], 3)
    old.put(ROWS[3:])
    apply(new, [(b"x", b"y", 1)], 1)
    carry(old, new)
    assert list(new.scan()) == ROWS[:3]
    apply(new, [(b"x", b"y", 1)], 9)
    carry(old, new)
    assert new.position() == 9
    old.close()
