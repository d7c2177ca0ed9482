"""The progress of a candidate: the arithmetic on the offsets that its runner knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.exec import BuildProgress


def records_read(progress: BuildProgress) -> int:
    """Return how many records it has read of those that there are."""
    return sum(position - begin for begin, position, _ in _partitions(progress))


def records_to_read(progress: BuildProgress) -> int:
    """Return how many records there are that it has not read yet."""
    return sum(end - position for _, position, end in _partitions(progress))


def percent(progress: BuildProgress) -> int:
    """Return how much it has read, in whole percent: 100 only if nothing is left.

    Where nothing is known it is 0.
    """
    if not progress.ends:
        return 0
    read, left = records_read(progress), records_to_read(progress)
    return 100 * read // (read + left) if left else 100


def seconds_behind(progress: BuildProgress) -> float | None:
    """Return how many seconds it needs for what is there, at its present speed.

    None: it has something to read and does not read.
    """
    left = records_to_read(progress)
    if not left:
        return 0.0
    rate = progress.records_per_second
    return left / rate if rate > 0 else None


def present_trouble(progress: BuildProgress | None, cut_over: str) -> str:
    """Return what keeps a candidate from its cut-over: that it fails now, else a failed try.

    ``cut_over`` says why the last try failed. As long as the candidate fails, there is no other.
    """
    return (progress.trouble if progress is not None else "") or cut_over


def _partitions(progress: BuildProgress) -> Iterator[tuple[int, int, int]]:
    """Yield begin, position and end of each partition, in this order.

    A partition of which no position is known has not been read yet. Records that retention takes
    unread count neither way, nor do those that came after the ends were asked for.
    """
    for topic, ends in progress.ends.items():
        begins, positions = progress.begin.get(topic, {}), progress.position.get(topic, {})
        for partition, end in ends.items():
            begin = min(begins.get(partition, 0), end)
            yield begin, min(max(positions.get(partition, begin), begin), end), end
