"""Limits of what may happen in a time: so many in a second, so much in the last hour."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND_MS: Final = 1_000
_WINDOW_MS: Final = 3_600_000


class PerSecond:
    """At most ``limit`` in a second; what a second leaves over may come at once in the next."""

    def __init__(self, limit: int, now_ms: Callable[[], int]) -> None:
        self._limit = limit
        self._now_ms = now_ms
        self._left = float(limit)
        self._at_ms = now_ms()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Return whether one more may happen, and count it if so."""
        with self._lock:
            now_ms = self._now_ms()
            passed_ms = max(0, now_ms - self._at_ms)
            self._left = min(self._limit, self._left + passed_ms * self._limit / _SECOND_MS)
            self._at_ms = now_ms
            if self._left < 1:
                return False
            self._left -= 1
            return True


class PerHour:
    """At most ``limit`` in the last hour, counted by the second; a ``limit`` of None is none."""

    def __init__(self, limit: int | None, now_ms: Callable[[], int]) -> None:
        self._limit = limit
        self._now_ms = now_ms
        self._seconds: deque[tuple[int, int]] = deque()
        self._sum = 0
        self._lock = threading.Lock()

    def add(self, amount: int) -> None:
        """Count what has happened."""
        if self._limit is None:
            return
        with self._lock:
            second = self._now_ms() // _SECOND_MS
            if self._seconds and self._seconds[-1][0] >= second:
                last, so_far = self._seconds.pop()
                self._seconds.append((last, so_far + amount))
            else:
                self._seconds.append((second, amount))
            self._sum += amount
            self._forget(second)

    def is_full(self) -> bool:
        """Return whether no more may happen for now."""
        if self._limit is None:
            return False
        with self._lock:
            self._forget(self._now_ms() // _SECOND_MS)
            return self._sum >= self._limit

    def _forget(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - _WINDOW_MS // _SECOND_MS:
            self._sum -= self._seconds.popleft()[1]
