"""Frozen samples: one JSON value per line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def dumped(value: Any) -> str:
    """JSON as the stored forms are written: no blanks, no escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_lines(file: Path, values: Iterable[Any]) -> None:
    """Write a file that must not be there yet.

    Raises: FileExistsError.
    """
    text = "".join(dumped(value) + "\n" for value in values)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as out:
        out.write(text)


def add_lines(file: Path, values: Iterable[Any]) -> None:
    """Write at the end of a file; the lines before stay as they are."""
    text = "".join(dumped(value) + "\n" for value in values)
    if text:
        with file.open("a", encoding="utf-8") as out:
            out.write(text)


def read_lines(file: Path) -> list[Any]:
    """The values of a file; their texts may hold what else Python takes for ends of lines."""
    return [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]
