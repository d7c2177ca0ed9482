"""A store in memory, for tests and for the local driver; it behaves as the one on disk does."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING

from ksql.stores.base import Change, Store, StoreClosed, Stored, StoredRow, check_forward

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.base.ids import Offset


class MemoryStore(Store):
    """A dictionary; its keys are sorted when a range is first asked for after a change."""

    def __init__(self) -> None:
        self._rows: dict[bytes, Stored] = {}
        self._order: list[bytes] | None = []
        self._position: Offset | None = None
        self._clock: int | None = None
        self._open = True
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        with self._lock:
            return self._live().get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Rows with ``lo <= key < hi`` in order."""
        with self._lock:
            rows = self._live()
            if self._order is None:
                self._order = sorted(rows)
            start = 0 if lo is None else bisect_left(self._order, lo)
            stop = len(self._order) if hi is None else bisect_left(self._order, hi)
            return iter([StoredRow(key, *rows[key]) for key in self._order[start:stop]])

    def position(self) -> Offset | None:
        """Return the offset of the next record to read."""
        with self._lock:
            self._live()
            return self._position

    def clock(self) -> int | None:
        """Return the time that the last commit stated."""
        with self._lock:
            self._live()
            return self._clock

    def commit(self, changes: Iterable[Change], position: Offset, clock: int | None = None) -> None:
        """Apply the changes and move to that position."""
        with self._lock:
            rows = dict(self._live())
            check_forward(self._position, position)
            for key, value, timestamp in changes:
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = Stored(value, timestamp)
            self._rows, self._order, self._position = rows, None, position
            self._clock = self._clock if clock is None else clock

    def clear(self) -> None:
        """Forget all rows and the position."""
        with self._lock:
            self._live()
            self._rows, self._order, self._position = {}, [], None
            self._clock = None

    def close(self) -> None:
        """End all use."""
        with self._lock:
            self._open = False

    def _live(self) -> dict[bytes, Stored]:
        if not self._open:
            raise StoreClosed("in memory")
        return self._rows
