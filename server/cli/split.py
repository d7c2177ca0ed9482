"""Splits a text into statements: quotes and comments are known, nothing else is.

Comments become blanks, so that every position the server reports is the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")"
    r"|(?P<open>['`\"]|/\*)"
    r"|(?P<end>;)",
    re.DOTALL,
)
_INK = re.compile(r"[^\n]")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_BEFORE = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)+", re.DOTALL)
_GLANCE = 200


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with its semicolon; line and column say where it starts, both from 1."""

    text: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Split:
    """The whole statements of a text, what is left over, and the quote that is still open in it.

    ``open_at`` is the place of that quote in the text that is left over.
    """

    statements: tuple[Statement, ...]
    rest: Statement
    open_quote: str = ""
    open_at: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left over."""
        return not self.rest.text

    def closed(self) -> tuple[Statement, ...]:
        """Return the statements, the last of which may lack its semicolon."""
        if self.is_complete:
            return self.statements
        return (*self.statements, replace(self.rest, text=self.rest.text + ";"))


def split(text: str, is_command: Callable[[str], bool] = lambda _line: False) -> Split:
    """Cut a text into statements; a line where one could begin may be a command, and ends with it.

    ``is_command`` says of such a line whether it is one.
    """
    statements: list[Statement] = []
    start = 0
    while True:
        end = _end_of_command(text, start, is_command)
        if end is None:
            one = _next(text, start)
            if not one.is_ended:
                return Split(tuple(statements), one.statement, one.open_quote, one.open_at)
            end, statement = one.end, one.statement
        else:
            statement = _statement(_COMMENT.sub(_blank, text[start:end]), text, start)
        if statement.text != ";":
            statements.append(statement)
        start = end


def _end_of_command(text: str, start: int, is_command: Callable[[str], bool]) -> int | None:
    """Return the end of the line that begins there if it is a command; None if it is not.

    An argument in quotes may be on the next line.
    """
    skipped = _BEFORE.match(text, start)
    position = start if skipped is None else skipped.end()
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    line = _COMMENT.sub(_blank, text[position:end]).rstrip()
    if not line or text[end : end + _GLANCE].lstrip().startswith("'"):
        return None
    return end if is_command(line) else None


@dataclass(frozen=True, slots=True)
class _Next:
    """The statement that begins at a place of a text; ``end`` is after its semicolon."""

    statement: Statement
    end: int
    is_ended: bool = False
    open_quote: str = ""
    open_at: int = 0


def _next(text: str, start: int) -> _Next:
    clean: list[str] = []  # what lies before ``position``, without comments
    position = start
    for token in _TOKEN.finditer(text, start):
        before = text[position : token.start()]
        if token.lastgroup == "open":
            open_at = len("".join([*clean, before]).lstrip())
            statement = _statement("".join([*clean, text[position:]]), text, start)
            return _Next(statement, len(text), open_quote=token[0], open_at=open_at)
        clean += [before, _blank(token) if token.lastgroup == "comment" else token[0]]
        position = token.end()
        if token.lastgroup == "end":
            return _Next(_statement("".join(clean), text, start), position, is_ended=True)
    return _Next(_statement("".join([*clean, text[position:]]), text, start), len(text))


def _blank(comment: re.Match[str]) -> str:
    return _INK.sub(" ", comment[0])


def _statement(clean: str, text: str, start: int) -> Statement:
    begin = start + len(clean) - len(clean.lstrip())
    column = begin - text.rfind("\n", 0, begin)
    return Statement(clean.strip(), text.count("\n", 0, begin) + 1, column)
