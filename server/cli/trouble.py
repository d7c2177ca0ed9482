"""Errors as a person reads them: the fact, the line it is about with a caret, the hint."""

from __future__ import annotations

import re

from rich.console import Group, RenderableType
from rich.text import Text

from server.cli.cells import clean
from server.cli.client import ServerFailure

_PLACE = re.compile(r"\bline:? (\d+)(?::|, col: )(\d+)", re.IGNORECASE)
_MARGIN = "  "


def render_trouble(
    error: Exception, text: str = "", where: str = "", width: int | None = None
) -> RenderableType:
    """The error; ``text`` is the statement it is about, ``where`` says which file and line."""
    said = error.message if isinstance(error, ServerFailure) else str(error)
    fact, _, rest = clean(said).partition("\n")
    parts: list[RenderableType] = [Text(f"{where}{fact}", style="red")]
    source = error.statement or text if isinstance(error, ServerFailure) else text
    place = _PLACE.search(said)
    if place:
        parts += _caret(source, int(place[1]), int(place[2]), width)
    if rest:
        parts.append(Text(rest))
    return Group(*parts)


def _caret(source: str, line: int, column: int, width: int | None) -> list[RenderableType]:
    """The line in question and a caret under the column; a long line is shown around it."""
    lines = source.split("\n")
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        return []
    shown, at = lines[line - 1].replace("\t", " "), column - 1
    room = (width or 10_000) - len(_MARGIN) - 1
    if len(shown) > room:
        start = max(0, min(at - room // 2, len(shown) - room))
        shown, at = shown[start : start + room], at - start
    return [
        Text(_MARGIN + clean(shown), no_wrap=True),
        Text(_MARGIN + " " * at + "^", style="bold red"),
    ]
