"""The id of the hidden topic that holds a version's rows, in a small file of its checkpoint.

A topic that is deleted and recreated keeps its name, not its id, and lacks the rows of before. A
cut-over would take them for deleted ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ksql.spark.checkpoint.checkpoint import TextsFile

_FILE: Final = TextsFile("results.json", "topics", "its topics are")


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


def forget(checkpoint: Path) -> None:
    """Forget the topic: it is about to be deleted, and one of its name may come later.

    Raises: OSError.
    """
    (checkpoint / _FILE.name).unlink(missing_ok=True)
