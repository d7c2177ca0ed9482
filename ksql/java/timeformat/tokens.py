"""Cuts a pattern into letters, literals and optional sections."""

from __future__ import annotations

from dataclasses import dataclass

from ksql.core import excerpt
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
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character.isascii() and character.isalpha():
            token, position = _letters(pattern, position, sections)
            stack[-1].append(token)
        elif character == "'":
            text, position = _quoted(pattern, position)
            stack[-1].append(Literal(text))
        elif sections and character in "[]{}#":
            _section(pattern, character, stack)
            position += 1
        else:
            stack[-1].append(Literal(character))
            position += 1
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


def _letters(pattern: str, position: int, sections: bool) -> tuple[Letters, int]:
    letter, end = _run(pattern, position)
    if not (sections and letter == "p"):
        return Letters(letter, end - position), end
    if end >= len(pattern) or not (pattern[end].isascii() and pattern[end].isalpha()):
        raise BadPattern(pattern, "Pad letter 'p' must be followed by valid pad pattern")
    padded, stop = _run(pattern, end)
    return Letters(padded, stop - end, pad=end - position), stop


def _run(pattern: str, position: int) -> tuple[str, int]:
    end = position
    while end < len(pattern) and pattern[end] == pattern[position]:
        end += 1
    return pattern[position], end


def _quoted(pattern: str, position: int) -> tuple[str, int]:
    if pattern[position : position + 2] == "''":
        return "'", position + 2
    text = ""
    position += 1
    while position < len(pattern):
        if pattern[position] != "'":
            text += pattern[position]
            position += 1
        elif pattern[position : position + 2] == "''":
            text += "'"
            position += 2
        else:
            return text, position + 1
    raise BadPattern(pattern, "Pattern ends with an incomplete string literal")
