"""JSON texts as Jackson reads and writes them, and the paths of EXTRACTJSONFIELD.

Decimals are exact, and what follows the value is ignored.

A path of EXTRACTJSONFIELD is like ``$.name[0]["other name"]``.
"""

from __future__ import annotations

import functools
import json
import re
from decimal import Decimal
from typing import Any

from ksql.java.text import from_units
from ksql.java.values import EvaluationError

MISSING = object()
_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class BadJson(EvaluationError):
    """A text that is not JSON."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a valid JSON string")


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _decimal(text: str) -> Decimal:
    """Read a number as BigDecimal does, which has no negative zero."""
    number = Decimal(text)
    return number if number else number.copy_abs()


_DECODER = json.JSONDecoder(parse_float=_decimal, parse_constant=_refuse)


def parse_json(text: str) -> Any:
    """Return the value that the text starts with; MISSING for a blank text.

    Raises: BadJson.
    """
    start = _BLANK.match(text)
    position = start.end() if start else 0
    if position == len(text):
        return MISSING
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError) as error:
        raise BadJson(text) from error
    after = text[end : end + 1]
    is_word = value is None or isinstance(value, int | Decimal)
    if is_word and after and after not in " \t\r\n":
        raise BadJson(text)
    return value


def json_text(value: Any) -> str:
    """Return the compact text of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            return f"{{{','.join(f'{quote(k)}:{json_text(v)}' for k, v in value.items())}}}"
        case _:
            return str(value)


def quote(text: str) -> str:
    """Return the text as a JSON string; only what must be escaped is."""
    return f'"{_ESCAPED.sub(_escape, from_units(text))}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


_STEP = re.compile(
    r"""\.(?P<name>[\w\-:$@]+)
      | \[(?P<index>[\w\-]+)\]
      | \["(?P<quoted>(?:[^"\\]|\\["\\])*)"\]""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")


class BadPath(EvaluationError):
    """A text that is no path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Invalid JSON path: '{path}'")


@functools.lru_cache(maxsize=512)
def steps(path: str) -> tuple[str, ...]:
    """Return the names and indexes of a path, in order.

    Raises: BadPath.
    """
    if not path.startswith("$"):
        raise BadPath(path)
    names = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise BadPath(path)
        quoted = step["quoted"]
        plain = step["name"] or step["index"]
        names.append(_ESCAPE.sub(r"\1", quoted) if quoted is not None else plain)
        position = step.end()
    return tuple(names)
