"""A checkpoint: its offsets read and moved, the operator's permits, the start offsets.

A checkpoint holds one file per planned batch (``offsets/N``: where it ends) and one per finished
batch (``commits/N``).

Source: Spark's Structured Streaming Programming Guide, on recovering from failures with
checkpointing.

Each query has the operator's permits to leave a checkpoint behind for its first launch.

They are given for one start of the server, to mend what is wrong at that time. A later
fault of a checkpoint is another matter, and an error of its query again.

A small file in the checkpoint, written before the query's start, holds the offsets where the query
begins. They are the offsets that "latest" meant when the query was made.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ksql.core import (
    CHECKPOINT_UNUSABLE,
    BeforeFormatZero,
    ServerError,
    versioned_json,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from ksql.core import QueryVersion


# line 1: the log's version; line 2: metadata; then one line per source, and we have one
_OFFSETS_LINE: Final = 2
_START_LINE: Final = 1  # of the file with the source's first offsets, behind a version
_TEXTS_VERSION: Final = 1
_LOG_VERSION: Final = 1  # of Spark's files

Offsets = dict[str, dict[int, int]]
"""Topic -> partition -> the next offset to read."""


class CheckpointDamaged(ServerError):
    """A checkpoint of which a file cannot be read."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"{file} is damaged",
            detail=reason,
            hint="Bring the checkpoint back from a copy, or move it away and start over with "
            "ksql.state.anew.",
        )


class NewerCheckpoint(ServerError):
    """A checkpoint that a later version has written."""

    def __init__(self, file: Path, newer: versioned_json.NewerVersion) -> None:
        super().__init__(
            f"{file} has format {newer.version}, this version knows up to {newer.known}",
            hint="Start the version that wrote it.",
        )


@contextmanager
def usable(query_id: str) -> Iterator[None]:
    """Translate what the disk says of a query's checkpoint.

    Raises: CHECKPOINT_UNUSABLE.
    """
    try:
        yield
    except OSError as problem:
        raise CHECKPOINT_UNUSABLE(query_id=query_id, reason=str(problem)) from problem


@contextmanager
def readable(file: Path, wrong: str = "") -> Iterator[None]:
    """Translate what is wrong with a file that is read here; ``wrong`` begins the detail.

    Raises: CheckpointDamaged, NewerCheckpoint; OSError as it is.
    """
    try:
        yield
    except versioned_json.NewerVersion as newer:
        raise NewerCheckpoint(file, newer) from newer
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointDamaged(file, f"{wrong}{error}") from error


@dataclass(frozen=True, slots=True)
class TextsFile:
    """A small file of a checkpoint: texts by name, under the field of its only version so far.

    ``named`` begins the text of the error about a field that holds something else.
    """

    name: str
    field: str
    named: str

    def read(self, checkpoint: Path) -> dict[str, str]:
        """Return the texts; empty if there is no file.

        Raises: CheckpointDamaged, NewerCheckpoint, OSError.
        """
        file = checkpoint / self.name
        try:
            with readable(file):
                known = {_TEXTS_VERSION: frozenset({self.field})}
                _, body = versioned_json.read(file.read_text(encoding="utf-8"), known)
                texts = body[self.field]
                if not isinstance(texts, dict):
                    raise TypeError(f"{self.named} no object")
                return {name: versioned_json.text_of(texts, name) for name in texts}
        except FileNotFoundError:
            return {}

    def write(self, checkpoint: Path, texts: Mapping[str, str]) -> None:
        """Write the texts in their order.

        Raises: OSError.
        """
        body = {"version": _TEXTS_VERSION, self.field: dict(texts)}
        write_atomically(checkpoint / self.name, json.dumps(body))


@dataclass(frozen=True)
class Position:
    """The last finished batch and where it ended."""

    batch: int
    offsets: Offsets


def committed(checkpoint: Path) -> Position | None:
    """Return the last batch that is finished for good; None if there is none yet."""
    return _position(checkpoint, _last(checkpoint / "commits"))


def committed_offsets(checkpoint: Path) -> Offsets:
    """Return where the last finished batch ended; empty before the first.

    It is empty, too, while the checkpoint cannot be read: the next launch says why.
    """
    try:
        position = committed(checkpoint)
    except (CheckpointDamaged, NewerCheckpoint, OSError):
        return {}
    return position.offsets if position else {}


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


def move(checkpoint: Path, starts: Mapping[str, Mapping[int, int]]) -> None:
    """Have a query that does not run, and has planned a batch, read topics from these offsets on.

    The last batch ends there. If it is half done it begins there as well, so that it takes no
    record of them. Those that it was planned for are gone.

    Raises: CheckpointDamaged, OSError.
    """
    last = _last(checkpoint / "offsets")
    if last is None:
        return
    first = last - half_done(checkpoint)
    if first < 0:
        _rewrite(checkpoint / "sources" / "0" / "0", _START_LINE, starts)
    for batch in range(max(first, 0), last + 1):
        _rewrite(checkpoint / "offsets" / str(batch), _OFFSETS_LINE, starts)


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
    file = checkpoint / "offsets" / str(batch)
    return Position(batch, _read(file, _OFFSETS_LINE)[1])


def _read(file: Path, line: int) -> tuple[list[str], Offsets]:
    """Return the lines of a file of Spark's, and the offsets that one of them holds."""
    lines = file.read_text(encoding="utf-8").splitlines()
    with readable(file, "it does not hold offsets: "):
        _check_version(lines[0] if lines else "")
        return lines, offsets_of(json.loads("".join(lines[line : line + 1])))


def _check_version(line: str) -> None:
    """Check the first line of a file of Spark's: ``v1``, behind a zero byte in that of a source.

    Raises: stored.NewerVersion, ValueError.
    """
    text = line.removeprefix("\0")
    version = int(text[1:]) if text[:1] == "v" and text[1:].isdecimal() else 0
    if version > _LOG_VERSION:
        raise versioned_json.NewerVersion(version, _LOG_VERSION)
    if version < _LOG_VERSION:
        raise ValueError(f"its first line is {line!r}, not a version")


def _rewrite(file: Path, line: int, starts: Mapping[str, Mapping[int, int]]) -> None:
    lines, offsets = _read(file, line)
    lines[line] = json.dumps({**offsets, **starts})
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # of the former text
    write_atomically(file, "\n".join(lines))


_ALL: Final = "all"


class RecoveryOverrides:
    """The queries that may begin again, or continue from an older checkpoint ("all": every one)."""

    def __init__(self, start_over: Collection[str], older: Collection[str]) -> None:
        self._start_over = frozenset(start_over)
        self._older = frozenset(older)
        self._over: set[QueryVersion] = set()

    def start_over(self, version: QueryVersion) -> bool:
        """Return whether it may begin from the start where its checkpoint does not fit."""
        return self._given(self._start_over, version)

    def older(self, version: QueryVersion) -> bool:
        """Return whether it may continue from a checkpoint that lacks batches."""
        return self._given(self._older, version)

    def end(self, version: QueryVersion) -> None:
        """End the permits of a version whose checkpoint fits."""
        self._over.add(version)

    def _given(self, chosen: frozenset[str], version: QueryVersion) -> bool:
        return bool(chosen & {version.query_id, _ALL}) and version not in self._over


VERSION: Final = 1
_VERSIONS: Final[versioned_json.Fields] = {VERSION: frozenset({"offsets"})}


START_OFFSETS: Final = "starts.json"
"""The file's name in the checkpoint."""


def write_starts(file: Path, offsets: Offsets) -> None:
    """Write the offsets down.

    Raises: OSError.
    """
    write_atomically(file, json.dumps({"version": VERSION, "offsets": offsets}))


def read_starts(file: Path) -> Offsets:
    """Return the offsets that were written down.

    Raises: CheckpointDamaged, NewerCheckpoint, BeforeFormatZero, OSError.
    """
    text = file.read_text(encoding="utf-8")
    with readable(file):
        body = versioned_json.parse(text)
        if isinstance(body.get("version", {}), dict):  # no version: at most a topic of that name
            raise BeforeFormatZero(str(file))
        _, body = versioned_json.read(text, _VERSIONS)
        return offsets_of(body["offsets"])
