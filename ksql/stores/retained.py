"""A store of a windowed table that forgets what its RETENTION no longer covers.

The partition's own time decides, the latest start of a window that it has seen: as the clock is
written with the rows, the same topic gives the same answers, however often the store was rebuilt.
Rows of older windows are not shown any more, at once; they are removed in slices, after the time
has moved on by half the retention, so that each row is looked at some three times in its life.

Source: Kafka Streams' window stores: observed stream time, segments.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ksql.stores.base import Change, Store, Stored, StoredRow
from ksql.types.windowed import kept_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.base.ids import Offset

_LEAST_SEGMENT_MS = 60_000
SLICE = 10_000


class Retained(Store):
    """A store under a retention; see there. ``sessions``: keys end with the window's end, start."""

    def __init__(self, store: Store, retention_ms: int, *, sessions: bool = False) -> None:
        self._store = store
        self._retention_ms = retention_ms
        self._sessions = sessions
        self._segment_ms = max(retention_ms // 2, _LEAST_SEGMENT_MS)
        self._swept = self._segment()
        self._sweeping: tuple[int | None, bytes] | None = None

    def _time(self, key: bytes) -> int:
        return kept_by(key, session=self._sessions)

    def _segment(self) -> int | None:
        clock = self._store.clock()
        return None if clock is None else clock // self._segment_ms

    def _horizon(self, clock: int | None) -> int | None:
        """Windows up to this time are forgotten."""
        return None if clock is None else clock - self._retention_ms

    def _is_kept(self, key: bytes) -> bool:
        horizon = self._horizon(self._store.clock())
        return horizon is None or self._time(key) > horizon

    # --- what readers see

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        return self._store.get(key) if self._is_kept(key) else None

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Rows with ``lo <= key < hi`` in order."""
        return self._kept(self._store.range(lo, hi))

    def _kept(self, rows: Iterator[StoredRow]) -> Iterator[StoredRow]:
        horizon = self._horizon(self._store.clock())
        if horizon is None:
            return rows
        return (row for row in rows if self._time(row.key) > horizon)

    def position(self) -> Offset | None:
        """Return the offset of the next record to read."""
        return self._store.position()

    def clock(self) -> int | None:
        """Return the latest time that was seen."""
        return self._store.clock()

    # --- what its writer does

    def commit(self, changes: Iterable[Change], position: Offset, clock: int | None = None) -> None:
        """Apply the changes, those of forgotten windows left out, and move the time forward."""
        listed = list(changes)
        times = [self._time(key) for key, value, _ in listed if value is not None]
        seen = [time for time in (clock, self._store.clock(), *times) if time is not None]
        newest = max(seen, default=None)
        horizon = self._horizon(newest)
        kept = (
            (key, value if horizon is None or self._time(key) > horizon else None, timestamp)
            for key, value, timestamp in listed
        )
        self._store.commit(kept, position, newest)

    def tidy(self, most: int = SLICE) -> int:
        """Remove forgotten rows, looking at so many at most; if it is time for that.

        Returns: how many were removed.
        """
        clock, position = self._store.clock(), self._store.position()
        if clock is None or position is None:
            return 0
        if self._sweeping is None:
            if self._segment() == self._swept:
                return 0
            self._sweeping = (self._segment(), b"")
        segment, start = self._sweeping
        rows = [row.key for row in itertools.islice(self._store.range(start), most)]
        horizon = clock - self._retention_ms
        old = [key for key in rows if self._time(key) <= horizon]
        if old:
            self._store.commit(((key, None, 0) for key in old), position, clock)
        if len(rows) < most:
            self._sweeping, self._swept = None, segment
        else:
            self._sweeping = (segment, rows[-1] + b"\x00")
        return len(old)

    def clear(self) -> None:
        """Forget all rows, the position and the time."""
        self._sweeping = self._swept = None
        self._store.clear()

    def close(self) -> None:
        """End all use."""
        self._store.close()
