"""A store in memory: the type ``in_memory``; each start of the server fills it from the topic."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ksql.stores.base import Change, Rows, Store, StoreClosed, Stored, StoredRow, check_forward
from ksql.stores.ordered import Ordered, coalesced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.base.ids import Offset


class MemoryStore(Store):
    """The rows in a dictionary; deleted ones are swept out when they are half of it."""

    def __init__(self) -> None:
        self._rows = Ordered()
        self._deleted = 0
        self._position: Offset | None = None
        self._clock: int | None = None
        self._hidden_from: int | None = None
        self._reliable = True
        self._open = True
        self._lock = threading.Lock()

    @property
    def transactional(self) -> bool:
        """Puts apply at once."""
        return False

    @property
    def uncommitted_bytes(self) -> int:
        """Nothing waits for a commit."""
        return 0

    @property
    def damage(self) -> str:
        """There are no files."""
        return ""

    def committed(self) -> Rows:
        """Return the store itself: nothing waits for a commit."""
        return self

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        found = self._live().get(key)
        return None if found is None or found[1] is None else Stored(found[1], found[2])

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Return rows with ``lo <= key < hi`` in order."""
        with self._lock:
            found = self._live().between(lo, hi)
        return (StoredRow(key, value, time) for key, value, time in found if value is not None)

    def position(self) -> Offset | None:
        """Return the offset of the last commit."""
        self._live()
        return self._position

    def clock(self) -> int | None:
        """Return the time that the last commit stated."""
        self._live()
        return self._clock

    def hidden_from(self) -> int | None:
        """Return the time of the earliest hidden window that the last commit stated."""
        self._live()
        return self._hidden_from

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes in order."""
        fresh = coalesced(changes)
        with self._lock:
            self._live().update(fresh)
            self._reliable = self._reliable and not fresh
            self._deleted += sum(value is None for _, value, _ in fresh.values())
            if 2 * self._deleted > len(self._rows):
                self._sweep()

    def _sweep(self) -> None:
        """Take out deleted keys; some may have been counted twice."""
        kept = Ordered()
        kept.update(coalesced(c for c in self._rows.changes() if c[1] is not None))
        self._rows, self._deleted = kept, 0

    def commit(
        self, offset: Offset, clock: int | None = None, hidden_from: int | None = None
    ) -> None:
        """Move to that position."""
        with self._lock:
            self._live()
            check_forward(self._position, offset)
            self._position, self._reliable = offset, True
            self._clock = self._clock if clock is None else clock
            self._hidden_from = self._hidden_from if hidden_from is None else hidden_from

    def recover(self, offset: Offset) -> bool:
        """Keep the rows if nothing was put since the last commit."""
        position = self.position()
        if self._reliable and position is not None and position >= offset:
            return True
        self.clear()
        return False

    def clear(self) -> None:
        """Forget all rows, the position and the times."""
        with self._lock:
            self._live()
            self._rows, self._deleted, self._reliable = Ordered(), 0, True
            self._position = self._clock = self._hidden_from = None

    def close(self) -> None:
        """End all use."""
        with self._lock:
            self._open, self._rows = False, Ordered()

    def _live(self) -> Ordered:
        if not self._open:
            raise StoreClosed("in memory")
        return self._rows
