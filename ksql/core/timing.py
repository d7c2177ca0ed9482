"""Clocks, rates, rests, log messages once in a while, time to start; what a process uses."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

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


def boot_s() -> float:
    """Return the seconds since the machine began, those that it has slept included.

    Systems without such a clock give their steady one, which may leave those out.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def steady_ms() -> int:
    """Return milliseconds of a clock that never goes back."""
    return int(time.monotonic() * 1000)


class GrowingRest:
    """The rest before the next try: twice as long after each failure, up to the longest one."""

    def __init__(
        self, longest_s: float, first_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.failures = 0
        self._longest_s, self._first_s, self._clock = longest_s, first_s, clock
        self._end_s = 0.0

    def begin(self) -> float:
        """Count a failure; return how long the rest after it takes."""
        rest_s = min(self._longest_s, self._first_s * (1 << min(self.failures, 20)))
        self.failures += 1
        self._end_s = self._clock() + rest_s
        return rest_s

    @property
    def over(self) -> bool:
        """Whether the next try is due."""
        return self._clock() >= self._end_s

    def clear(self) -> None:
        """Begin to count again: a try has succeeded."""
        self.failures = 0


PERIOD_S: Final = 60.0


class LogThrottle:
    """Counts one kind of event, and says when it is time to log it: once in a period."""

    def __init__(
        self, period_s: float = PERIOD_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._period_s = period_s
        self._clock = clock
        self._count = 0
        self._next_s = clock()

    def due(self) -> int:
        """Count one event; return how many there were since the last report, 0: not yet."""
        self._count += 1
        now = self._clock()
        if now < self._next_s:
            return 0
        self._next_s = now + self._period_s
        count, self._count = self._count, 0
        return count


_MOST_TIMES: Final = 4
_LOOK_S: Final = 5.0
_WORKING: Final = 0.02
"""Of a core: an idle JVM needs less, one that starts on a loaded machine more."""
_USER, _SYSTEM = 11, 12  # places in /proc/<pid>/stat after the command's name


class StartupTimeout:
    """A limit that is extended as long as processor time is used, to some times itself."""

    def __init__(
        self,
        limit_s: float,
        used_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``used_s``, which returns the processor time that the process has used so far."""
        self._used_s = used_s
        self._clock = clock
        self._began = self._looked = clock()
        self._deadline = self._began + limit_s
        self._end = self._began + limit_s * _MOST_TIMES
        self._used = used_s()

    @property
    def waited_s(self) -> float:
        """Return how long it has been."""
        return self._clock() - self._began

    def over(self) -> bool:
        """Return whether to give up now."""
        now = self._clock()
        if now - self._looked >= _LOOK_S:
            used = self._used_s()
            if used - self._used > _WORKING * (now - self._looked):
                self._deadline = max(self._deadline, now + 2 * _LOOK_S)
            self._looked, self._used = now, used
        return now > min(self._deadline, self._end)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    except (OSError, ValueError, IndexError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: Path = Path("/proc/self")) -> int:
    """Return the memory of a process, of this one by default; 0 where the system does not say."""
    try:
        pages = int((process / "statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
