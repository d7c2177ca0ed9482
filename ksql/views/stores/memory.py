"""A store in memory: the type ``in_memory``; each start of the server fills it from the topic.

It is transactional, as ``txn_rocksdb`` is: what is put waits in an open batch over the rows.

Source: KIP-892, which has in-memory stores with such a batch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ksql.views.stores.base import (
    Change,
    Rows,
    Store,
    StoreClosed,
    Stored,
    StoredRow,
    StoreSize,
    check_forward,
)
from ksql.views.stores.write_batch import WriteBatch, coalesced, laid_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.core import Offset


class MemoryStore(Store):
    """The rows in a dictionary; deleted ones are swept out when they are half of it."""

    def __init__(self) -> None:
        self._rows = WriteBatch()
        self._batch = WriteBatch()
        self._deleted = 0
        self._position: Offset | None = None
        self._clock: int | None = None
        self._hidden_from: int | None = None
        self._complete = True
        self._open = True
        self._lock = threading.Lock()

    @property
    def transactional(self) -> bool:
        return True

    @property
    def uncommitted_bytes(self) -> int:
        return self._batch.bytes

    def size(self) -> StoreSize:
        """Return what is committed; a deletion counts as a row until there are many of them."""
        self._check_open()
        return StoreSize(len(self._rows), self._rows.bytes)

    @property
    def damage(self) -> str:
        """There are no files."""
        return ""

    # --- what readers see

    def committed(self) -> Rows:
        return _Committed(self)

    def get(self, key: bytes) -> Stored | None:
        self._check_open()
        # in this order: a commit brings the changes to the rows before it takes them out here
        change = self._batch.get(key) or self._rows.get(key)
        return _row_of(change)

    def get_committed(self, key: bytes) -> Stored | None:
        """Return the committed row of that key, or None."""
        self._check_open()
        return _row_of(self._rows.get(key))

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        with self._lock:
            self._check_open()
            waiting, kept = self._batch.between(lo, hi), self._rows.between(lo, hi)
        return laid_over(waiting, _rows_of(kept)) if waiting else _rows_of(kept)

    def range_committed(
        self, lo: bytes | None = None, hi: bytes | None = None
    ) -> Iterator[StoredRow]:
        """Return committed rows with ``lo <= key < hi`` in order."""
        with self._lock:
            self._check_open()
            return _rows_of(self._rows.between(lo, hi))

    def position(self) -> Offset | None:
        self._check_open()
        return self._position

    def is_complete(self) -> bool:
        self._check_open()
        return self._complete

    def clock(self) -> int | None:
        self._check_open()
        return self._clock

    def hidden_from(self) -> int | None:
        self._check_open()
        return self._hidden_from

    # --- what its writer does

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes into the open batch."""
        fresh = coalesced(changes)
        with self._lock:
            self._check_open()
            self._batch.update(fresh)

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Bring the open batch to the rows, and move to that position."""
        with self._lock:
            self._check_open()
            check_forward(self._position, offset)
            self._apply()
            self._position, self._complete = offset, complete
            self._clock = self._clock if clock is None else clock
            self._hidden_from = self._hidden_from if hidden_from is None else hidden_from

    def _apply(self) -> None:
        fresh = coalesced(self._batch.changes())
        self._rows.update(fresh)
        self._batch = WriteBatch()
        self._deleted += sum(value is None for _, value, _ in fresh.values())
        if 2 * self._deleted > len(self._rows):
            self._sweep()

    def _sweep(self) -> None:
        """Take out deleted keys; some may have been counted twice."""
        kept = WriteBatch()
        kept.update(coalesced(c for c in self._rows.changes() if c[1] is not None))
        self._rows, self._deleted = kept, 0

    def recover(self, offset: Offset) -> bool:
        """Discard the open batch; the rows are always those of the position."""
        position = self.position()
        if position is not None and position >= offset:
            with self._lock:
                self._batch = WriteBatch()
            return True
        self.clear()
        return False

    def clear(self) -> None:
        with self._lock:
            self._check_open()
            self._rows, self._batch, self._deleted = WriteBatch(), WriteBatch(), 0
            self._position = self._clock = self._hidden_from = None
            self._complete = True

    def close(self) -> None:
        with self._lock:
            self._open, self._rows, self._batch = False, WriteBatch(), WriteBatch()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed("in memory")


class _Committed(Rows):
    """The rows without the open batch."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def get(self, key: bytes) -> Stored | None:
        return self._store.get_committed(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        return self._store.range_committed(lo, hi)


def _row_of(change: Change | None) -> Stored | None:
    return None if change is None or change[1] is None else Stored(change[1], change[2])


def _rows_of(kept: Iterable[Change]) -> Iterator[StoredRow]:
    return (StoredRow(key, value, time) for key, value, time in kept if value is not None)
