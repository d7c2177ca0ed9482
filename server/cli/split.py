"""Where one statement ends and the next begins: quotes and comments are known, nothing else is.

Comments become blanks, so that every position the server reports is the user's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")"
    r"|(?P<open>['`\"]|/\*)"
    r"|(?P<end>;)",
    re.DOTALL,
)
_INK = re.compile(r"[^\n]")


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


def split(text: str) -> Split:
    """Cut a text into statements."""
    clean: list[str] = []
    found: list[Statement] = []
    start = place = 0  # in the text; ``clean`` holds what lies between them, without comments
    open_quote, open_at = "", 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "open":
            open_quote = token[0]
            before = "".join(clean) + text[place : token.start()]
            open_at = len(before.lstrip())
            break
        comment = token.lastgroup == "comment"
        clean.append(text[place : token.start()])
        clean.append(_INK.sub(" ", token[0]) if comment else token[0])
        place = token.end()
        if token.lastgroup == "end":
            statement = _statement("".join(clean), text, start)
            if statement.text != ";":
                found.append(statement)
            clean, start = [], place
    clean.append(text[place:])
    return Split(tuple(found), _statement("".join(clean), text, start), open_quote, open_at)


def _statement(clean: str, text: str, start: int) -> Statement:
    place = start + len(clean) - len(clean.lstrip())
    column = place - text.rfind("\n", 0, place)
    return Statement(clean.strip(), text.count("\n", 0, place) + 1, column)
