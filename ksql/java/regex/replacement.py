"""Java's replacement texts: ``$1``, ``${name}``, backslash escapes."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from ksql.core import excerpt
from ksql.java.regex.matcher import Spans, compile_java
from ksql.java.values import LONGEST_RESULT, EvaluationError, ResultTooLong


class BadReplacement(EvaluationError):
    """A replacement that Java refuses."""

    def __init__(self, replacement: str, why: str) -> None:
        super().__init__(f"Invalid replacement {excerpt(replacement)!r}: {why}")


def replace_all(text: str, pattern: str, replacement: str) -> str:
    """Do as ``text.replaceAll(pattern, replacement)``.

    Raises: BadRegex, BadReplacement.
    """
    regex = compile_java(pattern)
    parts = _parts(replacement, regex.groups, regex.names)
    pieces: list[str] = []
    last = size = 0
    for spans in regex.finditer(text):
        start, end = spans[0]
        added = [text[last:start], *(_filled(part, text, spans) for part in parts)]
        size += sum(map(len, added))
        if size > LONGEST_RESULT:
            raise ResultTooLong("REGEXP_REPLACE", size)
        pieces += added
        last = end
    return "".join([*pieces, text[last:]]) if pieces else text


def _filled(part: Part, text: str, spans: Spans) -> str:
    if isinstance(part, str):
        return part
    start, end = spans[part]
    return text[start:end] if start >= 0 else ""


Part = str | int


def _parts(replacement: str, groups: int, names: Mapping[str, int]) -> tuple[Part, ...]:
    if "$" not in replacement and "\\" not in replacement:
        return (replacement,)
    return _compiled(replacement, groups, tuple(names.items()))


@functools.lru_cache(maxsize=512)
def _compiled(
    replacement: str, groups: int, named: tuple[tuple[str, int], ...]
) -> tuple[Part, ...]:
    """Return the pieces of a replacement: texts and groups by number or name."""
    names = dict(named)
    parts: list[Part] = []
    text = ""
    position = 0
    while position < len(replacement):
        character = replacement[position]
        if character == "\\":
            if position + 1 == len(replacement):
                raise BadReplacement(replacement, "character to be escaped is missing")
            text += replacement[position + 1]
            position += 2
        elif character == "$":
            group, position = _group(replacement, position + 1, groups, names)
            parts += [text, group]
            text = ""
        else:
            text += character
            position += 1
    return (*parts, text)


def _group(
    replacement: str, position: int, groups: int, names: Mapping[str, int]
) -> tuple[int, int]:
    rest = replacement[position:]
    if match := re.match(r"\{([a-zA-Z][a-zA-Z0-9]*)\}", rest):
        if match[1] not in names:
            raise BadReplacement(replacement, f"No group with name {{{match[1]}}}")
        return names[match[1]], position + match.end()
    if not rest[:1].isdigit():
        raise BadReplacement(replacement, "Illegal group reference")
    number, size = int(rest[0]), 1
    if number > groups:
        raise BadReplacement(replacement, f"No group {number}")
    while rest[size : size + 1].isdigit() and number * 10 + int(rest[size]) <= groups:
        number = number * 10 + int(rest[size])
        size += 1
    return number, position + size
