"""Counts of events by label, and histograms of durations; who shows them reads copies.

They know nothing of how they are shown, so every layer may count.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

Counts = Mapping[tuple[str, ...], int]
"""How often each tuple of labels was counted."""

_MOST: Final = 10_000
OTHERS: Final = "others"
"""The labels of events that came after a tally had all the labels that it may have."""


class Tally:
    """Counts by a tuple of labels; for any number of threads.

    With ``most`` different tuples it is full: further ones are counted together, as ``OTHERS``.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._counts: dict[tuple[str, ...], int] = {}
        self._most = most
        self._lock = threading.Lock()

    def add(self, *labels: str, by: int = 1) -> None:
        """Count an event, or ``by`` of them."""
        with self._lock:
            counts = self._counts
            if labels not in counts and len(counts) >= self._most:
                labels = (OTHERS,) * len(labels)
            counts[labels] = counts.get(labels, 0) + by

    def counts(self) -> Counts:
        """Return the counts by labels."""
        with self._lock:
            return dict(self._counts)


class Histogram(NamedTuple):
    """The durations of some events.

    ``counts`` has one more entry than ``bounds_s``: the durations up to each bound, not to the one
    before, and at last those beyond all bounds. ``sum_s`` is their sum in seconds.
    """

    bounds_s: Sequence[float]
    counts: Sequence[int]
    sum_s: float


SHORT_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
"""Bounds for answers to requests."""
LONG_S: Final = (0.25, 1.0, 5.0, 30.0, 120.0, 600.0)
"""Bounds for batches and replacements."""


class Durations:
    """A histogram that grows; for any number of threads."""

    def __init__(self, bounds_s: Sequence[float]) -> None:
        """Take ``bounds_s``: the upper bounds in seconds, in ascending order."""
        self._bounds_s = tuple(bounds_s)
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count an event that took so long."""
        with self._lock:
            self._counts[bisect_left(self._bounds_s, seconds)] += 1
            self._sum_s += seconds

    def histogram(self) -> Histogram:
        """Return all so far."""
        with self._lock:
            return Histogram(self._bounds_s, tuple(self._counts), self._sum_s)
