"""A store of a windowed table that forgets what its RETENTION no longer covers.

The partition's own time decides, the latest start of a window that it has seen. This clock is
written with the rows, so the same topic gives the same answers, however often the store was
rebuilt. Rows of older windows are hidden at once. They are removed in slices, after the time has
moved on by half the retention. So each row is looked at some three times in its life.

Readers learn that there were such rows (``hidden``). These are rows that a read passes over, that
were removed, or that came too late to be put. The time of the earliest is written with the clock.

Source: Kafka Streams' window stores: observed stream time, segments.
"""

from __future__ import annotations

import itertools
import threading
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.core.types import all_kept_by, kept_by
from ksql.views.stores.base import (
    Change,
    HiddenWindows,
    Rows,
    Store,
    Stored,
    StoredRow,
    StoreWrapper,
)
from ksql.views.stores.write_batch import coalesced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ksql.core import Offset

_LEAST_SEGMENT_MS = 60_000
SLICE = 10_000


class RetentionStore(StoreWrapper):
    """A store under a retention; see there. ``sessions``: keys end with the window's end, start."""

    def __init__(self, store: Store, retention_ms: int, *, sessions: bool = False) -> None:
        super().__init__(store)
        self._retention_ms = retention_ms
        self._sessions = sessions
        self._segment_ms = max(retention_ms // 2, _LEAST_SEGMENT_MS)
        self._seen = self._committed = store.clock()
        self._swept = self._segment()
        self._sweeping: tuple[int | None, bytes] | None = None
        self._hidden_from = store.hidden_from()
        self._lock = threading.Lock()
        self._shown = _CoveredRows(self, store, lambda: self._seen)

    def time_of(self, key: bytes) -> int:
        """Return the time that decides how long a key's window is kept (ms)."""
        return kept_by(key, session=self._sessions)

    def _segment(self) -> int | None:
        return None if self._seen is None else self._seen // self._segment_ms

    def forgotten(self, clock: int) -> int:
        """Return the time up to which windows are forgotten at that clock (ms)."""
        return clock - self._retention_ms

    def hide(self, time: int) -> None:
        """Remember that a window of that time has a row and is not shown; for any thread."""
        first = self._hidden_from
        if first is not None and first <= time:
            return
        with self._lock:
            first = self._hidden_from
            self._hidden_from = time if first is None else min(first, time)

    def hidden_at(self, clock: int | None) -> HiddenWindows | None:
        """Return which windows are not shown at that clock, as far as is known."""
        first = self._hidden_from
        if first is None or clock is None or first > self.forgotten(clock):
            return None
        return HiddenWindows(first, self.forgotten(clock), self._retention_ms)

    # --- what readers see

    def get(self, key: bytes) -> Stored | None:
        return self._shown.get(key)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        return self._shown.range(lo, hi)

    def committed(self) -> Rows:
        """Return the rows without the open batch, as of the last commit's time."""
        return _CoveredRows(self, self._store.committed(), lambda: self._committed)

    def hidden(self) -> HiddenWindows | None:
        return self._shown.hidden()

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
        forgotten = self.forgotten(seen)
        if min(times) > forgotten:
            self._store.put(listed)
        else:
            for key, value, _ in coalesced(listed).values():
                if value is not None and (time := self.time_of(key)) <= forgotten:
                    self.hide(time)
            self._store.put(
                (key, value if time > forgotten else None, timestamp)
                for (key, value, timestamp), time in zip(listed, times, strict=True)
            )
        self._seen = seen

    def commit(
        self,
        offset: Offset,
        clock: int | None = None,
        hidden_from: int | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Apply what was put, with the time that it has moved to and the earliest hidden one."""
        times = [time for time in (clock, self._seen) if time is not None]
        hidden = [time for time in (hidden_from, self._hidden_from) if time is not None]
        latest, earliest = max(times, default=None), min(hidden, default=None)
        self._store.commit(offset, latest, earliest, complete=complete)
        self._seen = self._committed = self._store.clock()

    def recover(self, offset: Offset) -> bool:
        """Discard what is not committed, and the time that it had moved to."""
        recovered = self._store.recover(offset)
        self._begin()
        return recovered

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
        forgotten = self.forgotten(self._seen)
        old = [key for key in rows if self.time_of(key) <= forgotten]
        if old:
            self.hide(min(map(self.time_of, old)))
            self._store.put((key, None, 0) for key in old)
        if len(rows) < most:
            self._sweeping, self._swept = None, segment
        else:
            self._sweeping = (segment, rows[-1] + b"\x00")
        return len(old)

    def clear(self) -> None:
        self._store.clear()
        self._begin()

    def _begin(self) -> None:
        self._seen = self._committed = self._store.clock()
        self._sweeping = None
        self._hidden_from = self._store.hidden_from()
        self._swept = self._segment()


class _CoveredRows(Rows):
    """The rows of the windows that are covered at the present time."""

    def __init__(self, store: RetentionStore, rows: Rows, clock: Callable[[], int | None]) -> None:
        self._store = store
        self._rows = rows
        self._clock = clock

    def get(self, key: bytes) -> Stored | None:
        clock, row = self._clock(), self._rows.get(key)
        if clock is None or row is None:
            return row
        time = self._store.time_of(key)
        if time > self._store.forgotten(clock):
            return row
        self._store.hide(time)
        return None

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        clock, rows = self._clock(), self._rows.range(lo, hi)
        return rows if clock is None else self._covered(rows, self._store.forgotten(clock))

    def hidden(self) -> HiddenWindows | None:
        return self._store.hidden_at(self._clock())

    def _covered(self, rows: Iterator[StoredRow], forgotten: int) -> Iterator[StoredRow]:
        time_of, hide = self._store.time_of, self._store.hide
        for row in rows:
            time = time_of(row.key)
            if time > forgotten:
                yield row
            else:
                hide(time)
