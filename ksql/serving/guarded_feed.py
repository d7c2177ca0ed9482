"""A feed for a user whose rights may end: it is asked for them again, now and then.

A push query reads for days. Without this, it would outlive the rights that it was admitted by.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ksql.core import RawRecord
    from ksql.serving.feed import Feed, Offsets

AGAIN_S: Final = 1.0
"""How long a right that has ended may still be used."""


class GuardedFeed:
    """Another feed; ``check`` raises once its reader may read no more."""

    def __init__(
        self, feed: Feed, check: Callable[[], None], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._feed = feed
        self._check = check
        self._now_s = now_s
        self._checked_s = now_s()

    @property
    def positions(self) -> Offsets:
        return self._feed.positions

    @property
    def open(self) -> bool:
        return self._feed.open

    def poll(self) -> Sequence[RawRecord]:
        """See Feed.

        Raises: what the check raises, before any more is read.
        """
        now_s = self._now_s()
        if now_s - self._checked_s >= AGAIN_S:
            self._checked_s = now_s
            self._check()
        return self._feed.poll()

    def pause(self, places: Collection[tuple[str, int]]) -> None:
        self._feed.pause(places)

    def end(self) -> None:
        self._feed.end()

    def close(self) -> None:
        self._feed.close()
