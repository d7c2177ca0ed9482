"""The plan that a switch tries, written beside the checkpoint until another plan goes on from it.

A server may die while the new plan's first batch is half done and its command is not in the log.
The old plan goes on then, but that batch is not its own: the new plan finishes it first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ksql.base.files import write_whole
from ksql.base.structs import Structs
from ksql.catalog.forms import FORMS
from ksql.catalog.model import PersistentQuery

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
_STRUCTS = Structs(FORMS)


def write(checkpoint: Path, query: PersistentQuery) -> None:
    """From now on batches of that checkpoint may be this plan's."""
    body = {"version": VERSION, "query": _STRUCTS.plain(query)}
    write_whole(_file(checkpoint), json.dumps(body))


def read(checkpoint: Path) -> PersistentQuery | None:
    """The plan that was tried last.

    Raises: KeyError, OSError, TypeError or ValueError for a file that cannot be read.
    """
    file = _file(checkpoint)
    if not file.exists():
        return None
    body = json.loads(file.read_text(encoding="utf-8"))
    if body["version"] > VERSION:
        raise ValueError(f"{file} has version {body['version']}, this server knows {VERSION}")
    found = _STRUCTS.build(body["query"])
    if not isinstance(found, PersistentQuery):
        raise TypeError(f"{file} holds no query")
    return found


def clear(checkpoint: Path) -> None:
    """Another plan goes on from here."""
    _file(checkpoint).unlink(missing_ok=True)


def _file(checkpoint: Path) -> Path:
    return checkpoint / "trial.json"
