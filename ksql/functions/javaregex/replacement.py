"""Java's replacement texts: ``$1``, ``${name}``, backslash escapes."""

from __future__ import annotations

import functools
import re

from ksql.functions.errors import EvaluationError
from ksql.functions.javaregex.translate import compile_java


class BadReplacement(EvaluationError):
    """A replacement that Java refuses."""

    def __init__(self, replacement: str, why: str) -> None:
        super().__init__(f"Invalid replacement {replacement!r}: {why}")


def replace_all(text: str, pattern: str, replacement: str) -> str:
    """``text.replaceAll(pattern, replacement)``.

    Raises: BadRegex, BadReplacement.
    """
    regex = compile_java(pattern)
    parts = _parts(replacement, regex.groups, tuple(regex.groupindex))
    if len(parts) == 1 and isinstance(parts[0], str):
        literal = parts[0]
        return regex.sub(lambda _: literal, text)

    def expand(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part[0]] or "" for part in parts)

    return regex.sub(expand, text)


Part = str | tuple[int | str]


@functools.lru_cache(maxsize=512)
def _parts(replacement: str, groups: int, names: tuple[str, ...]) -> tuple[Part, ...]:
    """The pieces of a replacement: texts and groups by number or name."""
    parts: list[Part] = []
    text = ""
    place = 0
    while place < len(replacement):
        character = replacement[place]
        if character == "\\":
            if place + 1 == len(replacement):
                raise BadReplacement(replacement, "character to be escaped is missing")
            text += replacement[place + 1]
            place += 2
        elif character == "$":
            group, place = _group(replacement, place + 1, groups, names)
            parts += [text, (group,)]
            text = ""
        else:
            text += character
            place += 1
    return (*parts, text)


def _group(
    replacement: str, place: int, groups: int, names: tuple[str, ...]
) -> tuple[int | str, int]:
    rest = replacement[place:]
    if found := re.match(r"\{([a-zA-Z][a-zA-Z0-9]*)\}", rest):
        if found[1] not in names:
            raise BadReplacement(replacement, f"No group with name {{{found[1]}}}")
        return found[1], place + found.end()
    if not rest[:1].isdigit():
        raise BadReplacement(replacement, "Illegal group reference")
    number, size = int(rest[0]), 1
    if number > groups:
        raise BadReplacement(replacement, f"No group {number}")
    while rest[size : size + 1].isdigit() and number * 10 + int(rest[size]) <= groups:
        number = number * 10 + int(rest[size])
        size += 1
    return number, place + size
