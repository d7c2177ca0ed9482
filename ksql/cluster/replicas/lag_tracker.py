"""Tracks how far topics are ahead of the stores that follow them, in offsets and in time.

The ends of topics are asked for now and then. Offsets: the end last seen, less the position. Time:
how long ago the latest end was seen that the store has reached. So it needs no record's timestamp
and no clock of another machine. It never says too little: all that was in the topic then is in the
store. It says too much by the time between two looks at most.

A look is valid for a few seconds only, by a clock that continues while the machine sleeps or the
process is stopped. A process that returns from a pause knows that it does not know the ends.

Source: KIP-535 (offset lag); the time lag is an upper bound of its own making.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

Place = tuple[str, int]
_MOST_LOOKS: Final = 600
KNOWN_S: Final = 5.0
"""How long the end of a topic that was looked at counts as known."""


@dataclass(slots=True)
class _Seen:
    """The ends of one partition that no store has reached yet, and what was reached last."""

    end: int = 0
    at_s: float = 0.0
    looks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_MOST_LOOKS))
    reached_s: float | None = None

    def look(self, at_s: float, end: int) -> None:
        self.end, self.at_s = end, at_s
        if self.looks and self.looks[-1][1] == end:
            self.looks.pop()  # a later look at the same end says more
        self.looks.append((at_s, end))

    def level_s(self, position: int) -> float | None:
        while self.looks and self.looks[0][1] <= position:
            self.reached_s = self.looks.popleft()[0]
        return self.reached_s


class LagTracker:
    """The lags of this server's stores; for any number of threads."""

    def __init__(
        self,
        ends: Callable[[Iterable[str]], Mapping[Place, int]],
        now_s: Callable[[], float],
    ) -> None:
        """Take ``ends``, which asks for the offsets after all records.

        ``now_s`` is a clock in seconds that does not rest while the machine sleeps.
        """
        self._ends = ends
        self._now_s = now_s
        self._seen: dict[Place, _Seen] = {}
        self._lock = threading.Lock()
        self._looking = threading.Lock()

    def look(self, topics: Iterable[str]) -> None:
        """Ask for the ends of these topics.

        Raises: KsqlError.
        """
        at_s = self._now_s()  # before: what comes while it is asked is not in the answer
        ends = self._ends(sorted(set(topics)))
        with self._lock:
            for partition, end in ends.items():
                self._seen.setdefault(partition, _Seen()).look(at_s, end)

    def freshen(self, topic: str, partition: int, within_s: float) -> None:
        """Look at a topic unless that was done so short a time ago; threads share one look.

        Raises: KsqlError.
        """
        with self._looking:
            with self._lock:
                seen = self._seen.get((topic, partition))
                if seen is not None and self._now_s() - seen.at_s <= within_s:
                    return
            self.look([topic])

    def keep(self, topics: Collection[str]) -> None:
        """Forget all but these topics."""
        with self._lock:
            self._seen = {
                partition: seen for partition, seen in self._seen.items() if partition[0] in topics
            }

    def lag(self, partition: Place, position: int) -> tuple[int | None, int | None]:
        """Return how many offsets and milliseconds a store is behind, as far as is known.

        The offsets are not known if the last look is too old.
        """
        with self._lock:
            seen = self._seen.get(partition)
            if seen is None:
                return None, None
            level_s = seen.level_s(position)
            now_s = self._now_s()
        time_ms = None if level_s is None else max(0, math.ceil((now_s - level_s) * 1000))
        offsets = max(0, seen.end - position) if now_s - seen.at_s <= KNOWN_S else None
        return offsets, time_ms
