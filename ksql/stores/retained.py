"""A store of a windowed table that forgets what its RETENTION no longer covers.

The partition's own time decides, the latest start of a window that it has seen: as the clock is
written with the rows, the same topic gives the same answers, however often the store was rebuilt.
Rows of older windows are not shown any more, at once; they are removed in slices, after the time
has moved on by half the retention, so that each row is looked at some three times in its life.

Source: Kafka Streams' window stores: observed stream time, segments.
"""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.stores.base import Change, Rows, Store, Stored, StoredRow
from ksql.types.windowed import all_kept_by, kept_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
        self._seen = store.clock()
        self._swept = self._segment()
        self._sweeping: tuple[int | None, bytes] | None = None
        self._shown = _Kept(store, lambda: self._seen, self._is_kept)

    @property
    def transactional(self) -> bool:
        """Whether puts wait for the commit."""
        return self._store.transactional

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the open batch takes."""
        return self._store.uncommitted_bytes

    @property
    def damage(self) -> str:
        """Return why the files cannot be trusted."""
        return self._store.damage

    def _time(self, key: bytes) -> int:
        return kept_by(key, session=self._sessions)

    def _segment(self) -> int | None:
        return None if self._seen is None else self._seen // self._segment_ms

    def _is_kept(self, key: bytes, clock: int | None) -> bool:
        """Return whether a key's window is no more than the retention before the clock."""
        return clock is None or self._time(key) > clock - self._retention_ms

    # --- what readers see

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        return self._shown.get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Return rows with ``lo <= key < hi`` in order."""
        return self._shown.range(lo, hi)

    def committed(self) -> Rows:
        """Return the rows without the open batch, as of the last commit's time."""
        return _Kept(self._store.committed(), self._store.clock, self._is_kept)

    def position(self) -> Offset | None:
        """Return the offset of the last commit."""
        return self._store.position()

    def clock(self) -> int | None:
        """Return the latest time that was committed."""
        return self._store.clock()

    # --- what its writer does

    def put(self, changes: Iterable[Change]) -> None:
        """Take changes, those of forgotten windows left out, and move the time forward."""
        listed = list(changes)
        if not listed:
            self._store.put(())
            return
        keys = map(itemgetter(0), listed)
        times = all_kept_by(keys, session=self._sessions)  # a deletion's, too: as in its segments
        latest = max(times)
        seen = latest if self._seen is None else max(latest, self._seen)
        forgotten = seen - self._retention_ms
        if min(times) > forgotten:
            self._store.put(listed)
        else:
            self._store.put(
                (key, value if time > forgotten else None, timestamp)
                for (key, value, timestamp), time in zip(listed, times, strict=True)
            )
        self._seen = seen

    def commit(self, offset: Offset, clock: int | None = None) -> None:
        """Apply what was put, with the time that it has moved to."""
        times = [time for time in (clock, self._seen) if time is not None]
        self._store.commit(offset, max(times, default=None))
        self._seen = self._store.clock()

    def recover(self, offset: Offset) -> bool:
        """Discard what is not committed, and the time that it had moved to."""
        found = self._store.recover(offset)
        self._begin()
        return found

    def tidy(self, most: int = SLICE) -> int:
        """Put the deletions of forgotten rows, looking at so many at most; if it is time for that.

        Returns: how many were deleted.
        """
        if self._seen is None:
            return 0
        if self._sweeping is None:
            if self._segment() == self._swept:
                return 0
            self._sweeping = (self._segment(), b"")
        segment, start = self._sweeping
        rows = [row.key for row in itertools.islice(self._store.range(start), most)]
        old = [key for key in rows if not self._is_kept(key, self._seen)]
        if old:
            self._store.put((key, None, 0) for key in old)
        if len(rows) < most:
            self._sweeping, self._swept = None, segment
        else:
            self._sweeping = (segment, rows[-1] + b"\x00")
        return len(old)

    def clear(self) -> None:
        """Forget all rows, the position and the time."""
        self._store.clear()
        self._begin()

    def close(self) -> None:
        """End all use."""
        self._store.close()

    def _begin(self) -> None:
        self._seen, self._sweeping = self._store.clock(), None
        self._swept = self._segment()


class _Kept(Rows):
    """The rows of the windows that are covered at the present time."""

    def __init__(
        self,
        rows: Rows,
        clock: Callable[[], int | None],
        is_kept: Callable[[bytes, int | None], bool],
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._is_kept = is_kept

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        return self._rows.get(key) if self._is_kept(key, self._clock()) else None

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Return rows with ``lo <= key < hi`` in order."""
        clock, rows = self._clock(), self._rows.range(lo, hi)
        if clock is None:
            return rows
        return (row for row in rows if self._is_kept(row.key, clock))
