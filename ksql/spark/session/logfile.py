"""Spark's log: written by its JVM, its workers and us, appended only, and bounded."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES: Final = 16 * 1024 * 1024
KEPT: Final = 3
"""Former files: ``spark.log.1`` is the newest."""


def rotate(file: Path, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> bool:
    """Move what the file has to another one if it is too much; return whether it was.

    Its writers have it open, to append: it is copied and emptied. Lines that they write between the
    two are lost.

    Raises: OSError.
    """
    if not file.exists() or file.stat().st_size <= most_bytes:
        return False
    for number in range(kept - 1, 0, -1):
        former = _former(file, number)
        if former.exists():
            former.replace(_former(file, number + 1))
    shutil.copyfile(file, _former(file, 1))
    with file.open("rb+") as full:
        full.truncate()
    return True


def _former(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
