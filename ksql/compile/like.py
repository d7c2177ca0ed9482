"""LIKE in linear time: ``%`` is any run of characters and ``_`` any one, but for line ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import re2

from ksql.base.excerpt import excerpt
from ksql.compile.errors import NullOperand

# What Java's dot does not match: % and _ do not cross a line's end.
_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_ANY = f"[^{_LINE_ENDS}]"
_split_lines = re.compile(f"([{_LINE_ENDS}])").split
_has_lines = re.compile(f"[{_LINE_ENDS}]").search
_MANY, _ONE = "%", "_"

Test = Callable[[str], bool]
Token = tuple[str, bool]
"""A character of the pattern, and whether it is a wildcard."""


class BadPattern(ValueError):
    """A LIKE pattern that ends in its escape character."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"the LIKE pattern '{excerpt(pattern)}' ends in its escape character")


class LongPattern(ValueError):
    """A LIKE pattern with single wildcards that is too long for the engine."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"the LIKE pattern '{excerpt(pattern)}' is too long")


@lru_cache(maxsize=1024)
def like_test(pattern: str, escape: str | None) -> Test:
    """Return a test whether a whole text fits the pattern.

    Raises: BadPattern, LongPattern.
    """
    tokens = _tokens(pattern, escape)
    if (_ONE, True) in tokens:
        return _by_engine(pattern, tokens)
    lines, ends = _lines(tokens)
    tests = [_of_line(line) for line in lines]
    if len(tests) == 1:
        only = tests[0]
        return lambda text: only(text) and not _has_lines(text)

    def fits(text: str) -> bool:
        parts = _split_lines(text)
        return parts[1::2] == ends and all(
            test(part) for test, part in zip(tests, parts[::2], strict=True)
        )

    return fits


def is_like_pattern(pattern: str, escape: str | None) -> bool:
    """Return whether the pattern can be compiled: it does not end in its escape character."""
    try:
        like_test(pattern, escape)
    except (BadPattern, LongPattern):
        return False
    return True


def like(text: str | None, pattern: str | None, escape: str | None) -> bool:
    """Return whether the whole text fits the pattern.

    Raises: NullOperand, BadPattern, LongPattern.
    """
    if text is None or pattern is None:
        raise NullOperand
    return like_test(pattern, escape)(text)


def _tokens(pattern: str, escape: str | None) -> list[Token]:
    tokens: list[Token] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, None)
            if escaped is None:
                raise BadPattern(pattern)
            tokens.append((escaped, False))
        else:
            tokens.append((char, char in (_MANY, _ONE)))
    return tokens


def _lines(tokens: Sequence[Token]) -> tuple[list[list[Token]], list[str]]:
    """Return the pattern between its line ends, and those: a text has to have the same ones."""
    lines: list[list[Token]] = [[]]
    ends = []
    for token in tokens:
        if token[0] in _LINE_ENDS:
            ends.append(token[0])
            lines.append([])
        else:
            lines[-1].append(token)
    return lines, ends


def _of_line(tokens: Sequence[Token]) -> Test:
    """Return a test for a text in one line, by the fixed parts between the ``%``."""
    parts = [""]
    for char, wild in tokens:
        if wild:
            parts.append("")
        else:
            parts[-1] += char
    if len(parts) == 1:
        (only,) = parts
        return lambda text: text.startswith(only) and len(text) == len(only)  # a NULL raises
    first, *middle, last = parts
    inner = [part for part in middle if part]
    if not inner:
        return _ends_test(first, last)
    shortest = len(first) + len(last)

    def fits(text: str) -> bool:
        if len(text) < shortest or not (text.startswith(first) and text.endswith(last)):
            return False
        start, end = len(first), len(text) - len(last)
        for part in inner:
            index = text.find(part, start, end)
            if index < 0:
                return False
            start = index + len(part)
        return True

    return fits


def _ends_test(first: str, last: str) -> Test:
    shortest = len(first) + len(last)
    return lambda text: len(text) >= shortest and text.startswith(first) and text.endswith(last)


def _by_engine(pattern: str, tokens: Sequence[Token]) -> Test:
    """Return a test that RE2 makes, for patterns with single wildcards."""
    wild = {_MANY: f"{_ANY}*", _ONE: _ANY}
    source = "".join(wild[char] if is_wild else re.escape(char) for char, is_wild in tokens)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    pattern_ = re2._re2.RE2(source.encode("utf-8", "surrogatepass"), options)  # noqa: SLF001 (fast)
    if not pattern_.ok():
        raise LongPattern(pattern)
    match, whole = pattern_.Match, re2._re2.RE2.Anchor.ANCHOR_BOTH  # noqa: SLF001

    def fits(text: str) -> bool:
        raw = text.encode("utf-8", "surrogatepass")
        return bool(match(whole, raw, 0, len(raw))[0][0] >= 0)

    return fits
