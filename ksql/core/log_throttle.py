"""Events that happen often, logged once in a while with their number."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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
