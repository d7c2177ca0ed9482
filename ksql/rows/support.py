"""What generated code calls: the parts of the language that are more than a Python operator."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ksql.rows.errors import NullOperand

# What Java's dot does not match: % and _ do not cross a line's end.
_ANY = "[^\n\r\u0085\u2028\u2029]"


class BadPattern(ValueError):
    """A LIKE pattern that ends in its escape character."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"the LIKE pattern '{pattern}' ends in its escape character")


def element(array: list[Any] | None, index: int | None) -> Any:
    """An element by its place from 1, or from the end if negative; NULL if there is none.

    Raises: NullOperand for a NULL index.
    """
    if array is None:
        return None
    if index is None:
        raise NullOperand
    if index == 0 or abs(index) > len(array):
        return None
    return array[index - 1 if index > 0 else index]


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression for the whole text.

    Raises: BadPattern.
    """
    parts: list[str] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, None)
            if escaped is None:
                raise BadPattern(pattern)
            parts.append(re.escape(escaped))
        elif char == "%":
            parts.append(f"{_ANY}*")
        elif char == "_":
            parts.append(_ANY)
        else:
            parts.append(re.escape(char))
    return re.compile("".join(parts))


def is_like_pattern(pattern: str, escape: str | None) -> bool:
    """Whether the pattern can be compiled: it does not end in its escape character."""
    try:
        like_pattern(pattern, escape)
    except BadPattern:
        return False
    return True


def like(text: str | None, pattern: str | None, escape: str | None) -> bool:
    """Whether the whole text fits the pattern.

    Raises: NullOperand, BadPattern.
    """
    if text is None or pattern is None:
        raise NullOperand
    return like_pattern(pattern, escape).fullmatch(text) is not None
