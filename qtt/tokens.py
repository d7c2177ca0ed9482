"""JSON whose numbers keep their text: 1.0, 1.00 and 1 are different expectations."""

from __future__ import annotations

import json
import re
from typing import Any

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Decimal(Number):
    """A number of a DECIMAL column: an expectation may write it as a string."""

    __slots__ = ()


class Double(Number):
    """A number of a format whose doubles are not compared digit by digit."""

    __slots__ = ()


def parse(text: str) -> Any:
    """A JSON text with its numbers as ``Number``.

    Raises: ValueError.
    """
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def parse_file(text: str) -> Any:
    """The same for a test file, which may have comments."""
    return parse(_COMMENT.sub(lambda match: match[1] or "", text))


def dump(value: Any) -> str:
    """The value as JSON text, its numbers as they were written."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ",".join(f"{json.dumps(k)}:{dump(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(dump, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def plain(value: Any) -> Any:
    """The value with ordinary numbers."""
    return json.loads(dump(value))
