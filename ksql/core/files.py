"""Small files that are whole or not there, also after a crash or a loss of power."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Put the text in the file's place at once; the folder must be there.

    Raises: OSError.
    """
    temporary = file.with_name(f".{file.name}.new")
    with temporary.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last.

    Raises: OSError.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
