"""Watches from another thread whether an event loop still turns.

Else probes that another loop answers would say that a server lives which hangs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ksql.core import NotReady

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

PATIENCE_S: Final = 30.0


class LoopHangs(NotReady):
    """The event loop that answers requests does something that does not end."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the event loop of REST has not turned for {seconds:.0f} s",
            hint="Restart the server, and report this.",
        )


class Pulse:
    """Knocks at a loop with each look; the next look sees whether it has answered."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._knocked_at: float | None = None

    def check(self) -> None:
        """Knock, unless a knock waits already.

        Raises: LoopHangs if that one has waited for 30 s.
        """
        now = self._clock()
        knocked_at = self._knocked_at
        if knocked_at is None:
            self._knocked_at = now
            self._loop.call_soon_threadsafe(self._answer)
        elif now - knocked_at >= PATIENCE_S:
            raise LoopHangs(now - knocked_at)

    def _answer(self) -> None:
        self._knocked_at = None
