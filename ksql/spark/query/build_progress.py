"""The progress of a version: its checkpoint's offsets, and the ends of its topics."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ksql.exec import BuildProgress
from ksql.spark.checkpoint.checkpoint import START_OFFSETS, read_starts
from ksql.spark.query.batch_limits import by_topic
from ksql.spark.query.spec import State

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.query.batch_limits import TopicOffsets
    from ksql.spark.query.query_supervisor import QuerySupervisor


def progress_of(
    running: QuerySupervisor, begins: TopicOffsets, ends: TopicOffsets
) -> BuildProgress:
    """Return how far a version has read; without offsets before its first start.

    A version that is held by an offset sync has no trouble.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError, and what Kafka says.
    """
    topics = running.topics
    begin = _begin(running.place.checkpoint, by_topic(begins(topics)) if topics else {})
    position = running.committed_offsets()
    return BuildProgress(
        begin=begin,
        position={**begin, **position},
        ends=by_topic(ends(topics)) if topics else {},
        records_per_second=(totals := running.totals()).rows_in_per_s,
        state_bytes=sum(stage.size_bytes for stage in running.state_sizes()),
        trouble="" if running.status().state is State.RUNNING else running.trouble(),
        batch_rate=totals.batch_rate,
        record_bytes=running.metrics.record_bytes,
        free_bytes=free_bytes(running.place.checkpoint),
    )


def free_bytes(directory: Path) -> int:
    """Return the room on the disk of a directory, which need not be there yet.

    Raises: OSError.
    """
    there = next(path for path in (directory, *directory.parents) if path.exists())
    return shutil.disk_usage(there).free


def _begin(checkpoint: Path, first: Offsets) -> Offsets:
    """Return the first offsets; those that "latest" meant at the version's start count instead."""
    file = checkpoint / START_OFFSETS
    pinned = read_starts(file) if file.exists() else {}
    return {
        topic: {at: pinned.get(topic, {}).get(at, offset) for at, offset in offsets.items()}
        for topic, offsets in first.items()
    }
