"""The records that a query has dropped of those that it has read lately."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LATELY_MS: Final = 300_000
"""The minutes that count, up to the last batch that has read anything."""

_SLOT_MS: Final = 10_000


class WorstRecord(NamedTuple):
    """The latest of the late records: how far behind stream time it was, and where it is from."""

    behind_ms: int
    topic: str
    partition: int


class DropCounts(NamedTuple):
    """Sums over some batches.

    ``dropped`` are the records that were left out for any reason, ``late`` those among them that
    came late for stream time. ``worst`` is one of these.
    """

    read: int = 0
    dropped: int = 0
    late: int = 0
    worst: WorstRecord | None = None

    def plus(self, other: DropCounts) -> DropCounts:
        """Return the sum of both."""
        worst = max(filter(None, (self.worst, other.worst)), default=None)
        return DropCounts(
            self.read + other.read, self.dropped + other.dropped, self.late + other.late, worst
        )


class RecentDrops:
    """The sums of the last minutes, in slots of ten seconds."""

    def __init__(self) -> None:
        self._slots: deque[tuple[int, DropCounts]] = deque()

    def add(self, batch_ms: int, batch: DropCounts) -> DropCounts:
        """Count a batch that began at that time; return the sum of the last minutes.

        A batch that has neither read nor dropped anything changes nothing: the warning about
        earlier records still holds.
        """
        slots, begin = self._slots, batch_ms - batch_ms % _SLOT_MS
        if batch.read or batch.dropped:
            if slots and slots[-1][0] == begin:
                batch = slots.pop()[1].plus(batch)
            slots.append((begin, batch))
            while slots[0][0] <= begin - LATELY_MS:
                slots.popleft()
        total = DropCounts()
        for _, slot in slots:
            total = total.plus(slot)
        return total


def late_of(seen: Mapping[str, Any]) -> DropCounts:
    """Return what the stages of a batch report about late records."""
    recent = DropCounts()
    for stage in seen.values():
        worst = stage.get("worst")
        recent = recent.plus(
            DropCounts(
                late=stage.get("late") or 0,
                worst=worst and WorstRecord(worst["BEHIND"], worst["TOPIC"], worst["PART"]),
            )
        )
    return recent
