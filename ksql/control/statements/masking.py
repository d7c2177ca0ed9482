"""Hides the values of connectors' configurations in texts of statements, as ksqlDB does.

It works on tokens, in time that grows with the text's length. The text need not be one that can be
parsed: an error shows the statement, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MASKED: Final = "'[string]'"
"""What ksqlDB shows instead of a value."""
_CLASS: Final = "connector.class"
_EQUALS: Final = ("=",)
_WORD: Final = re.compile(r"\bCONNECTOR\b", re.IGNORECASE)
_STATEMENT: Final = re.compile(r"\bCREATE\s+(?:SOURCE|SINK)\s+CONNECTOR\b", re.IGNORECASE)
_QUOTED: Final = r"'(?:[^']|'')*+(?:'|\Z)|\"(?:[^\"]|\"\")*+(?:\"|\Z)|`[^`]*+(?:`|\Z)"
_COMMENT: Final = r"--[^\n]*+|/\*.*?(?:\*/|\Z)"
_UNIT: Final = re.compile(rf"(?P<comment>{_COMMENT})|{_QUOTED}", re.DOTALL)
_TOKEN: Final = re.compile(rf"{_QUOTED}|[^\s,;()='\"`]++|\s++|.", re.DOTALL)


def masked(text: str) -> str:
    """Return a request's text without the values of connectors' configurations.

    The class is shown. Comments are left out, since a value may be in one.
    """
    if not _WORD.search(text):
        return text
    bare = _UNIT.sub(lambda unit: "" if unit["comment"] else unit[0], text)
    begin = _STATEMENT.search(bare)
    if begin is None:
        return text
    return bare[: begin.start()] + "".join(_masked(bare[begin.start() :]))


def _masked(text: str) -> Iterator[str]:
    """Yield the tokens; all between an equals sign and the end of its entry is one masked value."""
    name, blank = "", ""
    in_value = shown = False
    for token in _TOKEN.findall(text):
        if in_value and token in (",", ")", ";"):
            yield blank + token
            in_value, blank = False, ""
        elif in_value and token.isspace():
            blank = token
        elif in_value:
            if not shown:
                yield blank + (token if name == _CLASS else MASKED)
            shown, blank = True, ""
        else:
            yield token
            in_value, shown = token in _EQUALS, False
            name = name if token.isspace() or in_value else token.strip("'\"`").lower()
    yield blank
