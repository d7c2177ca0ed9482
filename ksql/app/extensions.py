"""The user functions of a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.functions.udf import Problem, read_directory

if TYPE_CHECKING:
    from ksql.core.config import Settings

DIRECTORY: Final = "ksql.extension.dir"


def read_extensions(settings: Settings, state: Path) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of the files that declare user functions; none if these are switched off.

    They are code that the server runs. So a relative directory is one of the state directory, never
    of wherever the server happened to be started.
    """
    if not settings.flag("ksql.udfs.enabled"):
        return {}, []
    return read_directory(state / Path(settings.text(DIRECTORY)).expanduser())
