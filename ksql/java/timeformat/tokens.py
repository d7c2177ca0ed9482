"""Cuts a pattern into letters, literals and optional sections."""

from __future__ import annotations

from dataclasses import dataclass

from ksql.base.excerpt import excerpt
from ksql.java.timeformat.errors import BadPattern


@dataclass(frozen=True, slots=True)
class Letters:
    """A run of one pattern letter; ``pad`` is the width that ``p`` before it asks for."""

    letter: str
    count: int
    pad: int = 0


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Optional:
    """The part of a pattern between brackets."""

    parts: tuple[Token, ...]


LONGEST_PATTERN = 1_000
"""Characters: each part of a pattern is compiled, and may be tried for each text."""
DEEPEST_SECTION = 50

Token = Letters | Literal | Optional


def tokenize(pattern: str, sections: bool = True) -> tuple[Token, ...]:
    """Return the tokens of a pattern.

    ``sections``: brackets are optional sections (DateTimeFormatter).

    Raises: BadPattern.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(excerpt(pattern), f"longer than {LONGEST_PATTERN} characters")
    stack: list[list[Token]] = [[]]
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character.isascii() and character.isalpha():
            token, place = _letters(pattern, place, sections)
            stack[-1].append(token)
        elif character == "'":
            text, place = _quoted(pattern, place)
            stack[-1].append(Literal(text))
        elif sections and character in "[]{}#":
            _section(pattern, character, stack)
            place += 1
        else:
            stack[-1].append(Literal(character))
            place += 1
    while len(stack) > 1:
        _close(pattern, stack)
    return tuple(stack[0])


def _section(pattern: str, character: str, stack: list[list[Token]]) -> None:
    if character == "[":
        if len(stack) > DEEPEST_SECTION:
            raise BadPattern(pattern, f"more than {DEEPEST_SECTION} sections in one another")
        stack.append([])
    elif character == "]":
        _close(pattern, stack)
    else:
        raise BadPattern(pattern, f"Pattern includes reserved character: '{character}'")


def _close(pattern: str, stack: list[list[Token]]) -> None:
    if len(stack) == 1:
        raise BadPattern(pattern, "Pattern invalid as it contains ] without previous [")
    stack[-2].append(Optional(tuple(stack.pop())))


def _letters(pattern: str, place: int, sections: bool) -> tuple[Letters, int]:
    letter, end = _run(pattern, place)
    if not (sections and letter == "p"):
        return Letters(letter, end - place), end
    if end >= len(pattern) or not (pattern[end].isascii() and pattern[end].isalpha()):
        raise BadPattern(pattern, "Pad letter 'p' must be followed by valid pad pattern")
    padded, stop = _run(pattern, end)
    return Letters(padded, stop - end, pad=end - place), stop


def _run(pattern: str, place: int) -> tuple[str, int]:
    end = place
    while end < len(pattern) and pattern[end] == pattern[place]:
        end += 1
    return pattern[place], end


def _quoted(pattern: str, place: int) -> tuple[str, int]:
    if pattern[place : place + 2] == "''":
        return "'", place + 2
    text = ""
    place += 1
    while place < len(pattern):
        if pattern[place] != "'":
            text += pattern[place]
            place += 1
        elif pattern[place : place + 2] == "''":
            text += "'"
            place += 2
        else:
            return text, place + 1
    raise BadPattern(pattern, "Pattern ends with an incomplete string literal")
