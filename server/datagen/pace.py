"""The pace of records: a rate, or random times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

TICK_S: Final = 0.1
MOST_AT_ONCE: Final = 10_000
"""So many records are sent before their acknowledgement is awaited."""

Portion = tuple[float, int]
"""The seconds to wait, and the number of records to send before that."""


def by_rate(per_second: int, clock: Callable[[], float]) -> Iterator[Portion]:
    """Yield portions of a steady rate; one that is late makes up for a second at most."""
    last, due = clock(), 1.0
    while True:
        now = clock()
        due = min(due + (now - last) * per_second, max(1.0, float(per_second)))
        last = now
        portion = min(int(due), MOST_AT_ONCE)
        due -= portion
        yield (0.0 if portion == MOST_AT_ONCE else max(TICK_S, (1 - due) / per_second)), portion


def at_random(max_interval_ms: int, dice: Random) -> Iterator[Portion]:
    """Yield single records, each at a random time after the one before."""
    while True:
        yield dice.uniform(0, max_interval_ms) / 1000, 1
