"""The two engines' spellings of Java's patterns."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Protocol

from ksql.java.regex import charset

if TYPE_CHECKING:
    from ksql.java.regex.charset import Ranges


class NotLinear(Exception):
    """A pattern that RE2 cannot match as Java does."""


class Dialect(Protocol):
    """One engine's way to write a pattern."""

    end: str

    def characters(self, ranges: Ranges) -> str:
        """Return one character of the set."""

    def line_start(self) -> str:
        """Return ``^`` where lines count."""

    def line_end(self) -> str:
        """Return ``$`` where lines count."""

    def text_end(self) -> str:
        """Return the end of a text, or before the line's end there."""

    def beyond(self) -> None:
        """Take note that the pattern uses what needs backtracking.

        Raises: NotLinear.
        """


class Backtracking:
    """The module ``regex``, which knows all of it."""

    end = r"\Z"

    def characters(self, ranges: Ranges) -> str:
        """Return a class; the empty one never matches."""
        if not ranges:
            return r"(?!)"
        return _class(ranges, r"\U{:08x}")

    def line_start(self) -> str:
        """Return what matches after a line's end, unless the text ends there."""
        return r"(?:\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?!\n|\Z))"

    def line_end(self) -> str:
        """Return what matches before a line's end; not between carriage return and line feed."""
        return r"(?=\r\n|[\r\x85\u2028\u2029]|(?<!\r)\n|\Z)"

    def text_end(self) -> str:
        """Return what matches at the end, or before the line's end there."""
        return r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"

    def beyond(self) -> None:
        """Accept what needs backtracking."""


class Linear:
    """RE2; ``at_end`` and ``at_lines`` mark the line ends in a text it would not see."""

    end = r"\z"

    def __init__(self) -> None:
        self.at_end = False
        self.at_lines = False

    def characters(self, ranges: Ranges) -> str:
        """Return a class; the empty one never matches."""
        if not ranges:
            return rf"[^\x00-\x{{{charset.LAST:x}}}]"
        return _class(ranges, r"\x{{{:x}}}")

    def line_start(self) -> str:
        """Return the start of a text of one line."""
        self.at_lines = True
        return r"\A"

    def line_end(self) -> str:
        """Return the end of a text of one line."""
        self.at_lines = True
        return r"\z"

    def text_end(self) -> str:
        """Return the end of a text that ends without a line's end."""
        self.at_end = True
        return r"\z"

    def beyond(self) -> None:
        """Raise NotLinear."""
        raise NotLinear


@functools.lru_cache(maxsize=128)
def _class(ranges: Ranges, form: str) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return f"[{''.join(_range(low, high, form) for low, high in ranges)}]"


def _range(low: int, high: int, form: str) -> str:
    return _escaped(low, form) if low == high else f"{_escaped(low, form)}-{_escaped(high, form)}"


def _escaped(code: int, form: str) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else form.format(code)
