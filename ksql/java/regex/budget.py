"""The time that a match may take if it cannot be promised to be linear.

Each query has a budget of its own: what one wastes is not taken from the others.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_S = 1.0
SHORTEST_S = 0.001
PERIOD_S = 60.0
PER_PERIOD_S = 5.0


class Budget:
    """One match may take a second; all matches that were cut short, five in a minute.

    Afterwards each gets a millisecond until the minute is over. A pattern that explodes on every
    record must not hold its batch, while ordinary texts still match.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._began = clock()
        self._spent_s = 0.0

    def limit_s(self) -> float:
        """Return how long the next match may take."""
        if self._spent_s < PER_PERIOD_S:
            return LONGEST_S
        if self.clock() - self._began < PERIOD_S:
            return SHORTEST_S
        self._spent_s = 0.0
        return LONGEST_S

    def lost(self, spent_s: float) -> None:
        """Take note that a match was given up after that time."""
        if self._spent_s == 0.0:
            self._began = self.clock()
        self._spent_s += spent_s


class _Thread(threading.local):
    """The budget of what this thread evaluates; one for all that belongs to no query."""

    budget = Budget()


_thread = _Thread()


def use(budget: Budget) -> None:
    """Have this thread spend from that budget until it gets another one."""
    _thread.budget = budget


def current() -> Budget:
    """Return the budget that this thread spends from."""
    return _thread.budget
