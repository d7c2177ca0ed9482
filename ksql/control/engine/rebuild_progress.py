"""The progress of a candidate, from the offsets of its runner, and the room for its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.control.engine.changes import BeginRebuild
from ksql.core import NO_ROOM
from ksql.exec.dataflow import plan_of, read_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.control.engine.context import Prepared
    from ksql.core import Settings
    from ksql.exec import BuildProgress, Runner
    from ksql.sql.catalog import Catalog

LEAST_FREE: Final = "ksql.upgrade.rebuild.min.free.bytes"


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


def present_problem(progress: BuildProgress | None, cut_over: str) -> str:
    """Return what keeps a candidate from its cut-over: that it fails now, else a failed try.

    ``cut_over`` says why the last try failed. As long as the candidate fails, there is no other.
    """
    return (progress.problem if progress is not None else "") or cut_over


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


def check_room(prepared: Prepared, catalog: Catalog, runner: Runner, settings: Settings) -> None:
    """Refuse a rebuild whose state plainly does not fit next to that of the running query.

    The running state is the measure where the candidate reads its sources from the beginning. One
    that begins later may need less, and a former version has its state already. Some bytes of the
    disk must stay free in any case.

    Raises: NO_ROOM.
    """
    least = settings.number(LEAST_FREE)
    for change in prepared.changes:
        match change:
            case BeginRebuild(rebuild) if not rebuild.rollback:
                query_id = rebuild.candidate.id
                progress = runner.progress(catalog.version_of(query_id))
                if progress is None or progress.free_bytes is None:
                    continue
                reads_all = set(read_topics(plan_of(rebuild.candidate)).values()) == {"earliest"}
                if (progress.state_bytes if reads_all else 0) + least > progress.free_bytes:
                    raise NO_ROOM(
                        query_id=query_id,
                        state_bytes=f"{progress.state_bytes:,}",
                        free_bytes=f"{progress.free_bytes:,}",
                        least=f"{least:,}",
                    )
            case _:
                continue
