"""The types of stores, and a table's way from one to another.

Source: KIP-591 and KIP-844, ``default.dsl.store``.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Literal, get_args

from ksql.views.stores.disk import DiskStore
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.rocks import StoreBudget, destroy
from ksql.views.stores.txn import TxnStore

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.views.stores.base import Store

StoreType = Literal["rocksdb", "txn_rocksdb", "in_memory"]

SETTING: Final = "default.dsl.store"
TYPES: Final[tuple[StoreType, ...]] = get_args(StoreType)
_PIECE = 10_000


def store_type(text: str) -> StoreType:
    """Return the type of that name, in any case of its letters.

    Raises: ValueError.
    """
    kind = next((kind for kind in TYPES if kind == text.lower()), None)
    if kind is None:
        raise ValueError(f"{text} is no type of store")
    return kind


def open_store(kind: StoreType, path: Path, budget: StoreBudget) -> Store:
    """Open a store of that type, with the rows that one of another type has left there.

    Raises: NewerStore, OlderStore, STORE_BUSY, StoreDamaged, StoreFailed.
    """
    match kind:
        case "rocksdb":
            return DiskStore.open(path, budget)
        case "txn_rocksdb":
            return TxnStore.open(path, budget)
        case "in_memory":
            return _loaded(path, budget)


def carry(old: Store, new: Store) -> None:
    """Give a store the committed rows of another, and its position, if that is farther."""
    position = old.position()
    if position is None or position <= (new.position() or 0):
        return
    new.clear()
    rows = old.committed().scan()
    while piece := list(itertools.islice(rows, _PIECE)):
        new.put(piece)
    new.commit(position, old.clock(), old.hidden_from(), complete=old.is_complete())


def _loaded(path: Path, budget: StoreBudget) -> MemoryStore:
    """Fill a store in memory from the one on disk, which is then deleted."""
    store = MemoryStore()
    if path.exists():
        left = TxnStore.open(path, budget, older=True)
        try:
            carry(left, store)
        finally:
            left.close()
        destroy(path)
    return store
