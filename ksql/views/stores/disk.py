"""A store on disk whose puts apply at once: the type ``rocksdb``.

Nothing of it goes to the write-ahead log, so it writes least. Rows that a killed process leaves
behind are of no certain offset. A mark that only an orderly end takes away shows that, and the
store is then emptied and filled from the topic's beginning.

Source: KIP-844, stores that are not transactional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ksql.core import KsqlError, Offset
from ksql.views.stores.base import Change, Rows, Stored, StoredRow, check_forward
from ksql.views.stores.rocks import IN_USE, Rocks, RocksStore, StoreBudget, numbers_of
from ksql.views.stores.write_batch import coalesced


class DiskStore(RocksStore):
    """One RocksDB; ``open`` it, and ``close`` it before its directory is touched."""

    def __init__(self, rocks: Rocks) -> None:
        super().__init__(rocks)
        self._reliable = rocks.number(IN_USE) is None
        self._marked = not self._reliable

    @classmethod
    def open(cls, path: Path, budget: StoreBudget) -> DiskStore:
        """Open the store in that directory, or make an empty one.

        Raises: NewerStore, OlderStore, STORE_BUSY, StoreDamaged, StoreFailed.
        """
        rocks = Rocks.open(path, budget, logged=False)
        try:
            return cls(rocks)
        except BaseException:
            rocks.close()
            raise

    @property
    def transactional(self) -> bool:
        """Puts apply at once."""
        return False

    @property
    def uncommitted_bytes(self) -> int:
        """Nothing waits for a commit."""
        return 0

    def committed(self) -> Rows:
        """Return the store itself: nothing waits for a commit."""
        return self

    def get(self, key: bytes) -> Stored | None:
        return self._rocks.get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        return self._rocks.range(lo, hi)

    def put(self, changes: Iterable[Change]) -> None:
        """Write changes in order."""
        fresh = coalesced(changes)
        self._rocks.check_open()
        if not fresh:
            return
        if not self._marked:
            self._rocks.write((), {IN_USE: 1}, logged=True)
            self._marked = True
        self._reliable = False
        self._rocks.write(fresh.values(), {})

    def is_complete(self) -> bool:
        """Return True: no transactions are known here, what is put is seen at once."""
        return True

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        check_forward(self.position(), offset)
        numbers = numbers_of(offset, clock, hidden_from)
        self._rocks.write((), numbers)
        self._moved(offset, clock, hidden_from)
        self._reliable = True

    def recover(self, offset: Offset) -> bool:
        position = self.position()
        if self._reliable and position is not None and position >= offset:
            return True
        self.clear()
        return False

    def clear(self) -> None:
        super().clear()
        self._reliable, self._marked = True, False

    def close(self) -> None:
        """Flush and close; the next ``open`` finds the rows reliable if all puts are committed."""
        if self._rocks.closed:
            return
        try:
            if self._reliable and self._marked:
                self._rocks.flush()
                self._rocks.write((), {IN_USE: None}, logged=True)
        except KsqlError as error:
            raise _closed(self._rocks, error) from error
        self._rocks.close()


def _closed(rocks: Rocks, first: KsqlError) -> KsqlError:
    """Close what could not be ended in order; return the reason."""
    try:
        rocks.close()
    except KsqlError as second:
        second.__cause__ = first
        return second
    return first
