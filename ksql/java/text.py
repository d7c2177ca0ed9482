"""Strings as Java sees them: counted and cut in UTF-16 units."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

# What String.trim removes: every character up to and including the space.
JAVA_SPACES = "".join(map(chr, range(33)))
_BEYOND = "\uffff"
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def is_simple(text: str) -> bool:
    """Return whether each character is one UTF-16 unit."""
    return text.isascii() or max(text) <= _BEYOND


def length(text: str) -> int:
    """Return the number of UTF-16 units."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > _BEYOND for character in text)


def to_units(text: str) -> str:
    """Return the text with one character per UTF-16 unit (surrogates stand alone)."""
    if is_simple(text):
        return text
    raw = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(raw[i] << 8 | raw[i + 1]) for i in range(0, len(raw), 2))


def from_units(text: str) -> str:
    """Return the text that the units spell; a surrogate that lost its partner becomes ``?``."""
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    whole = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return whole.encode("utf-8", "replace").decode("utf-8")


def in_units(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of strings done in UTF-16 units, if any argument needs them."""

    @wraps(function)
    def run(*args: Any) -> Any:
        if all(not isinstance(arg, str) or is_simple(arg) for arg in args):
            return function(*args)
        returned = function(*(to_units(arg) if isinstance(arg, str) else arg for arg in args))
        if isinstance(returned, list):
            return [from_units(part) for part in returned]
        return from_units(returned) if isinstance(returned, str) else returned

    return run


def mended(value: Any) -> Any:
    """Return a value of JSON, lone surrogates replaced as Java writes them in UTF-8.

    A key that is NULL becomes the text "null".
    """
    match value:
        case str():
            return _SURROGATE.sub("?", value)
        case list() | tuple():
            return [mended(item) for item in value]
        case dict():
            return {
                "null" if key is None else mended(key): mended(item) for key, item in value.items()
            }
        case _:
            return value
