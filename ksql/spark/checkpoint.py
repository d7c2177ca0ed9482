"""Reads a query's progress from its checkpoint, whether the query runs or not.

A checkpoint holds one file per planned batch (``offsets/N``: where it ends) and one per finished
batch (``commits/N``).

Source: Spark's Structured Streaming Programming Guide, on recovering from failures with
checkpointing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.base.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Offsets = dict[str, dict[int, int]]
"""Topic -> partition -> the next offset to read."""


class CheckpointDamaged(ServerError):
    """A checkpoint of which a file cannot be read."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"{file} is damaged",
            detail=reason,
            hint="Bring the checkpoint back from a copy, or move it away and begin anew with "
            "ksql.state.anew.",
        )


@dataclass(frozen=True)
class Position:
    """The last finished batch and where it ended."""

    batch: int
    offsets: Offsets


def committed(checkpoint: Path) -> Position | None:
    """Return the last batch that is finished for good; None if there is none yet."""
    return _position(checkpoint, _last(checkpoint / "commits"))


def planned(checkpoint: Path) -> Position | None:
    """Return the last batch that was begun; it may still run, or run again after a restart."""
    return _position(checkpoint, _last(checkpoint / "offsets"))


def last_committed(checkpoint: Path) -> int | None:
    """Return the number of the last finished batch."""
    return _last(checkpoint / "commits")


def half_done(checkpoint: Path) -> bool:
    """Return whether the last batch is begun and not finished; for a query that does not run."""
    begun, finished = _last(checkpoint / "offsets"), last_committed(checkpoint)
    return begun is not None and (finished is None or finished < begun)


def reached(now: Mapping[str, Mapping[int, int]], goal: Mapping[str, Mapping[int, int]]) -> bool:
    """Return whether every partition has come at least as far as the goal says."""
    return all(
        now.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in goal.items()
        for partition, offset in partitions.items()
    )


def offsets_of(body: Any) -> Offsets:
    """Return offsets of the Kafka source's JSON form.

    Raises: AttributeError, TypeError or ValueError for any other object.
    """
    return {
        topic: {int(partition): int(offset) for partition, offset in partitions.items()}
        for topic, partitions in body.items()
    }


def _last(folder: Path) -> int | None:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _position(checkpoint: Path, batch: int | None) -> Position | None:
    if batch is None:
        return None
    # line 1: the log's version; line 2: metadata; then one line per source, and we have one
    file = checkpoint / "offsets" / str(batch)
    lines = file.read_text(encoding="utf-8").splitlines()
    try:
        return Position(batch, offsets_of(json.loads("".join(lines[2:3]))))
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointDamaged(file, f"it does not hold offsets: {error}") from error
