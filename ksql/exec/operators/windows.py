"""Time windows: which ones a timestamp falls into, which are too late, which are forgotten."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.exec.operators.base import Store

_META = b"m"
_CLOCK = b"clock"
_SPACE = struct.Struct(">cq")


@dataclass(frozen=True, slots=True)
class Windows:
    """Tumbling (advance = size) or hopping windows, aligned to the epoch; [start, end)."""

    size_ms: int
    advance_ms: int
    grace_ms: int
    retention_ms: int

    @property
    def tumbling(self) -> bool:
        """Whether each time falls into one window."""
        return self.advance_ms == self.size_ms

    def starts(self, timestamp: int) -> Sequence[int]:
        """Return the starts of the windows that the timestamp falls into, the earliest first."""
        if self.advance_ms == self.size_ms and timestamp >= 0:
            return (timestamp - timestamp % self.size_ms,)
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms
        return range(first * self.advance_ms, timestamp + 1, self.advance_ms)

    def last_closed(self, stream_time: int) -> int:
        """Return the start of the last window that has closed at that time.

        End plus grace are reached.
        """
        return stream_time - self.size_ms - self.grace_ms

    def first_closing(self, timestamp: int) -> int:
        """Return the stream time at which the first of the windows of a timestamp closes."""
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms
        return first * self.advance_ms + self.size_ms + self.grace_ms

    @property
    def pane_ms(self) -> int:
        """The longest stretch such that all times of one fall into the same windows."""
        return gcd(self.size_ms, self.advance_ms)

    @property
    def segment_ms(self) -> int:
        """Windows are forgotten in segments of this length."""
        return max(self.retention_ms // 2, 60_000)


@dataclass(slots=True)
class Clock:
    """Stream time of one bucket (the highest timestamp seen) and the segments with state."""

    windows: Windows
    stream_time: int = -1
    segments: set[int] = field(default_factory=set)

    @staticmethod
    def load(store: Store) -> None:
        """Fetch what ``read`` needs."""
        store.load(_META, (_CLOCK,))

    @classmethod
    def read(cls, store: Store, windows: Windows) -> Clock:
        """Continue where the last batch ended."""
        stored = store.get(_META, _CLOCK)
        if stored is None:
            return cls(windows)
        time, segments = stored
        return cls(windows, time, set(segments))

    def advance(self, timestamp: int) -> None:
        """See a record's timestamp."""
        self.stream_time = max(self.stream_time, timestamp)

    def tumbled(self, times: Sequence[int]) -> list[int] | None:
        """Return the starts of the windows of records in processing order, and see their times.

        None, and nothing is seen, if windows overlap or a record is late.
        """
        windows, all_times = self.windows, np.asarray(times, np.int64)
        if not windows.tumbling or all_times.min() < 0:
            return None
        starts = all_times - all_times % windows.size_ms
        latest = np.maximum(np.maximum.accumulate(all_times), self.stream_time)
        if (starts + (windows.size_ms + windows.grace_ms) <= latest).any():
            return None
        self.advance(int(latest[-1]))
        listed: list[int] = starts.tolist()
        return listed

    def is_late(self, start: int) -> bool:
        """Return whether the window has closed: its end plus the grace period has been reached."""
        return start <= self.windows.last_closed(self.stream_time)

    def space(self, start: int) -> bytes:
        """Return the space that holds the windows of that time."""
        segment = start // self.windows.segment_ms
        self.segments.add(segment)
        return _SPACE.pack(b"w", segment)

    def write(self, store: Store) -> None:
        """Remember the time, forget the segments that no record can reach any more."""
        self.forget(store)
        store.put(_META, _CLOCK, [self.stream_time, sorted(self.segments)])

    def forget(self, store: Store) -> None:
        """Forget the segments that no record can reach any more."""
        length = self.windows.segment_ms
        horizon = self.stream_time - self.windows.retention_ms
        for segment in [s for s in self.segments if (s + 1) * length <= horizon]:
            store.drop(_SPACE.pack(b"w", segment))
            self.segments.discard(segment)
