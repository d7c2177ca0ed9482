"""Writes Java's patterns for RE2 and ``regex``; sets of characters as ranges of code points.

Sets of characters are sorted ranges of code points, with Java's predefined classes.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


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
            return rf"[^\x00-\x{{{LAST:x}}}]"
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
        self.at_end = True
        return r"\z"

    def beyond(self) -> None:
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


T = TypeVar("T")
Ranges = tuple[tuple[int, int], ...]

LAST = sys.maxunicode
ALL: Ranges = ((0, LAST),)


def of_characters(characters: Iterable[str]) -> Ranges:
    """Return the set of those characters."""
    return union(*(((ord(c), ord(c)),) for c in characters))


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """Return all characters that are in any of the sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(itertools.chain(*sets)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Return all characters that are not in the set."""
    gaps = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


def intersection(first: Ranges, second: Ranges) -> Ranges:
    """Return the characters that are in both sets."""
    return complement(union(complement(first), complement(second)))


def either_case(ranges: Ranges) -> Ranges:
    """Return the set with the other case of its ASCII letters."""
    added = [
        (max(low, ord(first)) + shift, min(high, ord(last)) + shift)
        for low, high in ranges
        for first, last, shift in (("A", "Z", 32), ("a", "z", -32))
        if max(low, ord(first)) <= min(high, ord(last))
    ]
    return union(ranges, added) if added else ranges


def _spans(*pairs: str) -> Ranges:
    return union(*(((ord(pair[0]), ord(pair[-1])),) for pair in pairs))


DIGITS = _spans("09")
WORD = _spans("az", "AZ", "09", "_")
SPACES = of_characters(" \t\n\x0b\f\r")
HORIZONTAL = union(of_characters("\t \xa0\u1680\u180e\u202f\u205f\u3000"), _spans("\u2000\u200a"))
VERTICAL = of_characters("\n\x0b\f\r\x85\u2028\u2029")
LINE_ENDS = of_characters("\n\r\x85\u2028\u2029")

# Letter after the backslash -> set; the capital letter means the complement.
PREDEFINED: dict[str, Ranges] = {
    "d": DIGITS,
    "w": WORD,
    "s": SPACES,
    "h": HORIZONTAL,
    "v": VERTICAL,
}

_POSIX: dict[str, Ranges] = {
    "Lower": _spans("az"),
    "Upper": _spans("AZ"),
    "ASCII": ((0, 127),),
    "Alpha": _spans("az", "AZ"),
    "Digit": DIGITS,
    "Alnum": _spans("az", "AZ", "09"),
    "Punct": _spans("!/", ":@", "[`", "{~"),
    "Graph": _spans("!~"),
    "Print": _spans(" ~"),
    "Blank": of_characters(" \t"),
    "Cntrl": ((0, 31), (127, 127)),
    "XDigit": _spans("09", "af", "AF"),
    "Space": SPACES,
}

_TESTS: dict[str, Callable[[str], bool]] = {
    "javaLowerCase": str.islower,
    "javaUpperCase": str.isupper,
    "javaTitleCase": lambda c: unicodedata.category(c) == "Lt",
    "javaDigit": lambda c: unicodedata.category(c) == "Nd",
    "javaLetter": lambda c: unicodedata.category(c)[0] == "L",
    "javaAlphabetic": str.isalpha,
    "javaLetterOrDigit": lambda c: unicodedata.category(c)[0] == "L" or c.isdecimal(),
    "javaWhitespace": lambda c: (
        c in "\t\n\x0b\f\r\x1c\x1d\x1e\x1f"
        or (unicodedata.category(c)[0] == "Z" and c not in "\xa0\u2007\u202f")
    ),
    "javaMirrored": lambda c: bool(unicodedata.mirrored(c)),
    "IsAlphabetic": str.isalpha,
    "IsLetter": lambda c: unicodedata.category(c)[0] == "L",
    "IsLowercase": str.islower,
    "IsUppercase": str.isupper,
    "IsTitlecase": lambda c: unicodedata.category(c) == "Lt",
    "IsDigit": lambda c: unicodedata.category(c) == "Nd",
    "IsPunctuation": lambda c: unicodedata.category(c)[0] == "P",
    "IsControl": lambda c: unicodedata.category(c) == "Cc",
    "IsWhite_Space": str.isspace,
    "IsIdeographic": lambda c: "CJK" in unicodedata.name(c, ""),
}
_GROUPS = frozenset("LMNPSZC")


@functools.lru_cache(maxsize=64)
def of_property(name: str) -> Ranges | None:
    r"""Return the set of ``\p{name}``.

    None if there is no such property here (scripts and blocks).
    """
    if name in _POSIX:
        return _POSIX[name]
    if name in _TESTS:
        return _of_test(name)
    by_category = _by_category()
    category = name.partition("=")[2] if "=" in name else name.removeprefix("Is")
    if category == "LC":
        return union(*(by_category[part] for part in ("Lu", "Ll", "Lt")))
    if category in _GROUPS:
        return union(*(ranges for part, ranges in by_category.items() if part[0] == category))
    return by_category.get(category)


@functools.cache
def _of_test(name: str) -> Ranges:
    test = _TESTS[name]
    return tuple((low, high) for inside, low, high in _runs(test) if inside)


@functools.cache
def _by_category() -> dict[str, Ranges]:
    by_category: dict[str, list[tuple[int, int]]] = {}
    for category, low, high in _runs(unicodedata.category):
        by_category.setdefault(category, []).append((low, high))
    return {category: tuple(ranges) for category, ranges in by_category.items()}


def _runs(fact: Callable[[str], T]) -> Iterator[tuple[T, int, int]]:
    """Return first and last code point of each run of characters that share a fact."""
    code = 0
    for kind, run in itertools.groupby(map(fact, map(chr, range(LAST + 1)))):
        size = sum(1 for _ in run)
        yield kind, code, code + size - 1
        code += size
