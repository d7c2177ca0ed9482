"""The store type ``txn_rocksdb``: changes wait in memory; a commit writes them with the position.

What is put waits in memory, the last change of each key only, and is read from there. ``commit``
writes it to RocksDB together with the position, in one batch through the write-ahead log. So there
is nothing to undo after a crash, and nothing to read again but what was not committed. Leaving
the log out would save a third of the time of a commit. It would cost a re-read of up to one
write buffer per store.

RocksDB's own batches with an index and its transactions are not in the Python library. The batch
here does what the former do and keeps fewer changes.

Source: KIP-844 (indexed batches).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ksql.views.stores.base import Change, Rows, Stored, StoredRow, check_forward
from ksql.views.stores.rocks import IN_USE, PARTIAL, Rocks, RocksStore, StoreBudget, numbers_of
from ksql.views.stores.write_batch import WriteBatch, coalesced, laid_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ksql.core import Offset


class TxnStore(RocksStore):
    """One RocksDB and the open batch; ``close`` it before its directory is touched.

    While a commit is written, its batch is read still, next to the open one. So a reader sees the
    same rows before, during and after it.
    """

    def __init__(self, rocks: Rocks) -> None:
        super().__init__(rocks)
        self._batch = WriteBatch()
        self._applying: WriteBatch | None = None
        self._lock = threading.Lock()
        self._complete = rocks.number(PARTIAL) is None
        if rocks.number(IN_USE) is not None:  # another type's, and not ended in order
            self.clear()

    @classmethod
    def open(cls, path: Path, budget: StoreBudget, *, older: bool = False) -> TxnStore:
        """Open the store in that directory, or make an empty one.

        ``older``: one of an earlier format is used as it is.

        Raises: NewerStore, OlderStore, STORE_BUSY, StoreDamaged, StoreFailed.
        """
        rocks = Rocks.open(path, budget, logged=True, older=older)
        try:
            return cls(rocks)
        except BaseException:
            rocks.close()
            raise

    @property
    def transactional(self) -> bool:
        return True

    @property
    def uncommitted_bytes(self) -> int:
        return self._batch.bytes

    # --- what readers see

    def committed(self) -> Rows:
        return _Committed(self._rocks)

    def get(self, key: bytes) -> Stored | None:
        self._rocks.check_open()
        # in this order: a batch moves from the first to the second, and from there to the disk
        change = self._batch.get(key)
        if change is None and (applying := self._applying) is not None:
            change = applying.get(key)
        if change is None:
            return self._rocks.get(key)
        return None if change[1] is None else Stored(change[1], change[2])

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        with self._lock:
            waiting = self._batch.between(lo, hi)
            applying = [] if self._applying is None else self._applying.between(lo, hi)
            kept = self._rocks.range(lo, hi)
        if applying:
            waiting = _over(waiting, applying)
        return laid_over(waiting, kept) if waiting else kept

    def is_complete(self) -> bool:
        self._rocks.check_open()
        return self._complete

    # --- what its writer does

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes into the open batch."""
        fresh = coalesced(changes)
        self._rocks.check_open()
        with self._lock:
            self._batch.update(fresh)

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Write the batch and the position at once; if that fails, the batch stays open."""
        check_forward(self.position(), offset)
        numbers = numbers_of(offset, clock, hidden_from)
        if complete != self._complete:
            numbers[PARTIAL] = None if complete else 1
        with self._lock:
            self._applying, self._batch = self._batch, WriteBatch()
        try:
            self._rocks.write(self._applying.in_order(), numbers)  # in order: cheaper
        except BaseException:
            with self._lock:
                self._batch, self._applying = self._applying, None
            raise
        self._moved(offset, clock, hidden_from)
        self._complete = complete
        with self._lock:
            self._applying = None

    def recover(self, offset: Offset) -> bool:
        """Discard the open batch; the rows on disk are always those of the position."""
        position = self.position()
        if position is not None and position >= offset:
            self._discard()
            return True
        self.clear()
        return False

    def clear(self) -> None:
        super().clear()
        self._discard()
        self._complete = True

    def close(self) -> None:
        """Close, without a commit."""
        self._discard()
        self._rocks.close()

    def _discard(self) -> None:
        with self._lock:
            self._batch = WriteBatch()


class _Committed(Rows):
    """The rows on disk."""

    def __init__(self, rocks: Rocks) -> None:
        self._rocks = rocks

    def get(self, key: bytes) -> Stored | None:
        return self._rocks.get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        return self._rocks.range(lo, hi)


def _over(upper: list[Change], lower: list[Change]) -> list[Change]:
    """Lay later changes over earlier ones; both and the result are in the keys' order."""
    changes = coalesced((*lower, *upper))
    return [changes[key] for key in sorted(changes)]
