"""Bounds how long look-ups that wait for the disk hold up the event loop.

A look-up by key is answered by the loop itself: to hand it to a thread takes longer than the
look-up. A read of a block that is neither in RocksDB's cache nor in the system's waits for the
disk, and all connections with it. That takes tenths of a millisecond, on a slow disk very much
longer.
"""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SLOW_S: Final = 0.002
_PERIOD_S: Final = 1.0
_MOST_S: Final = 0.1  # in a period


def blocks_read() -> int:
    """Return how many blocks this thread has read from disks; any number where nobody counts."""
    if not hasattr(resource, "RUSAGE_THREAD"):
        return time.monotonic_ns()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock


class IoBudget:
    """The time that slow look-ups have taken from the loop lately; for the loop's thread.

    Only those count during which the disk was read. A look-up may also be slow because the process
    is busy; moving it to a thread would not help then.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        blocks: Callable[[], int] = blocks_read,
    ) -> None:
        self._now_s = now_s
        self._blocks = blocks
        self._seen = 0
        self._period = 0.0
        self._spent = 0.0

    def begin(self) -> float | None:
        """Return the time, or None if the loop should do no look-ups for now."""
        now = self._now_s()
        if self._spent and now - self._period >= _PERIOD_S:
            self._spent = 0.0
        if self._spent >= _MOST_S:
            return None
        self._seen = self._blocks()
        return now

    def end(self, began: float) -> None:
        """Take note that a look-up is done."""
        took = self._now_s() - began
        if took < _SLOW_S:
            return
        if self._blocks() == self._seen:
            return
        if not self._spent:
            self._period = began
        self._spent += took
