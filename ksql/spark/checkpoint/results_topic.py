"""The id of the hidden topic that holds a version's rows, in a small file of its checkpoint.

A topic that is deleted and recreated keeps its name, not its id, and lacks the rows of before. A
cut-over would take them for deleted ones.

The version that runs has no such topic, but a copy of its result's rows while a cut-over from it is
prepared. Its file names the copy then, which is deleted if the cut-over does not come about.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ksql.spark.checkpoint.checkpoint import TextsFile

_FILE: Final = TextsFile("results.json", "topics", "its topics are")
_COPY: Final = "copy"
"""It is in the place of the topic's id."""


def read(checkpoint: Path, topic: str) -> str:
    """Return the id that the topic had; empty if none is known.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    return _FILE.read(checkpoint).get(topic, "")


def write(checkpoint: Path, topic: str, id_: str) -> None:
    """Write the id of the topic down.

    Raises: OSError.
    """
    _FILE.write(checkpoint, {topic: id_})


def note_copy(checkpoint: Path, topic: str) -> None:
    """Write down that the topic has a copy of the result's rows, or a part of it.

    Raises: OSError.
    """
    write(checkpoint, topic, _COPY)


def is_copy(checkpoint: Path, topic: str) -> bool:
    """Return whether the topic has only a copy of the result's rows.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    return read(checkpoint, topic) == _COPY


def forget(checkpoint: Path) -> None:
    """Forget the topic: it is about to be deleted, and one of its name may come later.

    Raises: OSError.
    """
    (checkpoint / _FILE.name).unlink(missing_ok=True)
