"""Errors as a person reads them: the fact, the line it is about with a caret, the hint.

A server counts lines within the statement that it got; the user sees lines of the text or script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from server.cli.client import ServerFailure
from server.cli.grid import clean
from server.cli.split import Statement

_PLACE = re.compile(r"\bline:? (\d+)(?::|, col: )(\d+)(:\s)?", re.IGNORECASE)
_AT = re.compile(r"\s+at\s*\Z")
_MARGIN = "  "


@dataclass(frozen=True, slots=True)
class _Position:
    """A line and a column, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"

    def within(self, statement: Statement) -> _Position:
        """Return the same place, counted from the start of the text around the statement."""
        shift = statement.column - 1 if self.line == 1 else 0
        return _Position(self.line + statement.line - 1, self.column + shift)


def render_trouble(
    error: Exception,
    statement: Statement | None = None,
    script: str = "",
    width: int | None = None,
) -> RenderableType:
    """Draw the error of a statement; ``script`` names its file."""
    statement = statement or Statement("")
    message = error.message if isinstance(error, ServerFailure) else str(error)
    text = statement.text
    if isinstance(error, ServerFailure) and error.statement:
        text = error.statement
    position = _place_in(message, text)
    fact, _, rest = clean(_located(message, position, statement, script)).partition("\n")
    parts: list[RenderableType] = [Text(fact, style="red")]
    if position is not None:
        parts += _caret(text, position, width)
    if rest:
        parts.append(Text(rest))
    return Group(*parts)


def _place_in(message: str, text: str) -> _Position | None:
    """Return the first place that the message names, if the text has it."""
    match = _PLACE.search(message)
    if match is None:
        return None
    line, column = int(match[1]), int(match[2])
    lines = text.split("\n")
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        return None
    return _Position(line, column)


def _located(message: str, position: _Position | None, statement: Statement, script: str) -> str:
    """Return the message with one place in it: the user's own."""
    if position is None:
        return f"{script}, line {statement.line}: {message}" if script else message
    own = position.within(statement)
    match = _PLACE.search(message)
    if match is None:
        return message
    before, after = message[: match.start()], message[match.end() :]
    after = re.sub(rf"\s+at {re.escape(str(position))}(?!\d)", "", after)
    if script:
        return f"{script}, {own}: {_AT.sub('', before)}{after}"
    return f"{before}{own}{match[3] or ''}{after}"


def _caret(text: str, position: _Position, width: int | None) -> list[RenderableType]:
    """Return the line in question and a caret under the column; a long line is shown around it."""
    shown, at = text.split("\n")[position.line - 1].replace("\t", " "), position.column - 1
    room = (width or 10_000) - len(_MARGIN) - 1
    if len(shown) > room:
        start = max(0, min(at - room // 2, len(shown) - room))
        shown, at = shown[start : start + room], at - start
    return [
        Text(_MARGIN + clean(shown), no_wrap=True),
        Text(_MARGIN + " " * at + "^", style="bold red"),
    ]
