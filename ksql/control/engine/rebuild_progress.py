"""How far a candidate is behind the ends of its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ksql.exec.ports import BuildProgress


def seconds_behind(progress: BuildProgress) -> float | None:
    """Return how long it reads to the present ends; None if it reads nothing and is not there."""
    left = sum(
        max(end - progress.position.get(topic, {}).get(partition, 0), 0)
        for topic, ends in progress.ends.items()
        for partition, end in ends.items()
    )
    if left == 0:
        return 0.0
    return left / progress.records_per_second if progress.records_per_second > 0 else None
