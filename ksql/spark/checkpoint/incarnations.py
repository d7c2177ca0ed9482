"""The incarnations of queries: each checkpoint holds one, which has a name of its own.

A query's id can come again (a chosen QUERY_ID, a terminated cluster, a command that was never
written), and so do the numbers of its batches. What Kafka remembers of batches is therefore kept
under the id and the incarnation's random name, which is written into the checkpoint
before the first start. A replacement continues the incarnation of the plan that it replaces.

Checkpoints of versions that knew no incarnations continue under the id alone.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.core import versioned_json
from ksql.core.errors import ServerError
from ksql.core.files import write_atomically
from ksql.spark.checkpoint import schemapaths
from ksql.spark.checkpoint.checkpoint import CheckpointDamaged, readable

if TYPE_CHECKING:
    from ksql.spark.checkpoint.checkpoint import Position

_log = logging.getLogger(__name__)

FORMAT: Final = 1
_VERSIONS: Final[versioned_json.Fields] = {FORMAT: frozenset({"incarnation"})}
_FILE: Final = "life.json"
_SPARKS: Final = "metadata"  # Spark writes it before the first batch


class CheckpointMissing(ServerError):
    """A query that has run before, and whose checkpoint is not where it should be."""

    def __init__(self, query_id: str, checkpoint: Path) -> None:
        super().__init__(
            f"the checkpoint of query {query_id} is missing: {checkpoint} is not there",
            detail="Its state and its place in its sources are lost, or lie elsewhere. It is not "
            "started over by itself: that would skip or repeat records and write new counts over "
            "old ones.",
            hint="Bring the directory back (`ksql state list` shows what was moved aside) and "
            f"start again; or start once with -o ksql.state.anew={query_id} (or =all) to start "
            f"over on purpose; or TERMINATE {query_id}.",
        )


class OlderCheckpoint(ServerError):
    """A checkpoint that lacks batches whose results Kafka holds: a copy, or the rest of a loss."""

    def __init__(self, query_id: str, checkpoint: Path, planned: int | None, written: int) -> None:
        last = "none" if planned is None else f"batch {planned} as its last"
        super().__init__(
            f"the checkpoint of query {query_id} is older than what the query has written: "
            f"{checkpoint} knows {last}, Kafka has batch {written} of it",
            detail="It was restored from a copy, or lost its last files with the power. The "
            "query writes each number once (exactly_once_v2): new batches would reuse committed "
            "numbers, so they would be skipped and their records lost.",
            hint="Bring the newest checkpoint back and start again; or start once with "
            f"-o ksql.state.older={query_id} (or =all) to continue from this one, which writes "
            "again what was written since; or start once with "
            f"-o ksql.state.anew={query_id} to start over; or TERMINATE {query_id}.",
        )


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One incarnation of a query; ``name`` is empty where it began before they had names."""

    name: str

    def application(self, owner: str) -> str:
        """Return the query's name in Kafka; ``owner`` is the part that they all share."""
        return f"{owner}-{self.name}" if self.name else owner

    def groups(self, owner: str) -> re.Pattern[str]:
        """Return the pattern of the names of this incarnation's consumer groups only."""
        name = re.escape(self.application(owner))
        # a name without an incarnation is the beginning of those with one
        return re.compile(f"{name}(-.*)?" if self.name else rf"{name}-(stage|\d+)-\d+")


def begin(checkpoint: Path, name: str) -> Incarnation:
    """Begin an incarnation in a directory; what is there already becomes this incarnation's.

    Raises: OSError.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    write_atomically(checkpoint / _FILE, json.dumps({"format": FORMAT, "incarnation": name}) + "\n")
    return Incarnation(name)


def check_present(query_id: str, checkpoint: Path, incarnation: Incarnation) -> None:
    """Refuse a checkpoint that has gone or holds another incarnation: Spark would begin again.

    Raises: CheckpointMissing, CheckpointDamaged, NewerCheckpoint.
    """
    if incarnation_of(checkpoint) != incarnation:
        raise CheckpointMissing(query_id, checkpoint)


def check_age(query_id: str, checkpoint: Path, next_batch: int, planned: Position | None) -> None:
    """Refuse a checkpoint that has not planned all that its incarnation has written.

    ``next_batch`` is the number after the last one that Kafka holds of this incarnation.

    Raises: OlderCheckpoint.
    """
    known = planned.batch if planned is not None else None
    if next_batch > (-1 if known is None else known) + 1:
        raise OlderCheckpoint(query_id, checkpoint, known, next_batch - 1)


def incarnation_of(checkpoint: Path) -> Incarnation | None:
    """Return the incarnation that a directory holds; None if it holds none.

    Raises: CheckpointDamaged, NewerCheckpoint.
    """
    file = checkpoint / _FILE
    try:
        return _named(file) or _nameless(checkpoint)
    except OSError as error:
        raise CheckpointDamaged(file, str(error)) from error


def _named(file: Path) -> Incarnation | None:
    try:
        with readable(file):
            _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS, "format")
            return Incarnation(versioned_json.text_of(body, "incarnation"))
    except FileNotFoundError:
        return None


def _nameless(checkpoint: Path) -> Incarnation | None:
    return Incarnation("") if holds_anything(checkpoint) and not _torn(checkpoint) else None


def require(query_id: str, checkpoint: Path) -> Incarnation:
    """Return the incarnation that a query continues, wherever its checkpoint was written.

    Raises: CheckpointMissing, CheckpointDamaged, NewerCheckpoint, StateMetadataUnknown.
    """
    _bring_home(checkpoint)
    incarnation = incarnation_of(checkpoint)
    if incarnation is None:
        raise CheckpointMissing(query_id, checkpoint)
    schemapaths.lead_home(checkpoint)
    return incarnation


def holds_anything(checkpoint: Path) -> bool:
    """Return whether there is a directory with anything in it."""
    return checkpoint.is_dir() and any(checkpoint.iterdir())


def _torn(checkpoint: Path) -> bool:
    """Return whether these are batches without their beginning.

    Spark continues to write where a directory is removed under a query: not what it writes first.
    """
    return not (checkpoint / _SPARKS).exists() and any((checkpoint / "offsets").glob("[0-9]*"))


def _bring_home(checkpoint: Path) -> None:
    """Move in what earlier versions of this service let Spark write elsewhere.

    They gave it the path as a URI, whose escapes it took for letters: ``/a b`` became ``/a%20b``.
    """
    elsewhere = Path(checkpoint.as_uri().removeprefix("file://"))
    if (
        elsewhere == checkpoint
        or not (elsewhere / _SPARKS).exists()
        or (checkpoint / _SPARKS).exists()
    ):
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    entries = sorted(elsewhere.iterdir(), key=lambda entry: entry.name == _SPARKS)
    try:
        for entry in entries:  # the one that shows that all are there comes last
            entry.rename(checkpoint / entry.name)
        elsewhere.rmdir()
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        _copy_home(elsewhere, checkpoint)
    _log.warning(
        "checkpoint_moved_home", extra={"origin": str(elsewhere), "checkpoint": str(checkpoint)}
    )


def _copy_home(elsewhere: Path, checkpoint: Path) -> None:
    """Copy what lies on another file system; a copy that a crash cuts short is made again."""

    def last(folder: str, _names: list[str]) -> list[str]:
        return [_SPARKS] if Path(folder) == elsewhere else []

    shutil.copytree(elsewhere, checkpoint, ignore=last, dirs_exist_ok=True)
    os.sync()
    write_atomically(checkpoint / _SPARKS, (elsewhere / _SPARKS).read_text(encoding="utf-8"))
    shutil.rmtree(elsewhere)
