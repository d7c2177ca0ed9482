"""Hides the values of connectors' configurations in texts of statements, as ksqlDB does.

It hides secrets of other statements, too, as in ``SET 'ssl.key.password'='..'``.

It works on tokens, in time that grows with the text's length. The text need not be one that can be
parsed: an error shows the statement, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ksql.core import is_secret, without_secrets

MASKED: Final = "'[string]'"
"""What ksqlDB shows instead of a value."""
_SCHEME: Final = "://"
_CLASS: Final = "connector.class"
_EQUALS: Final = ("=",)
_WORD: Final = re.compile(r"\bCONNECTOR\b", re.IGNORECASE)
_STATEMENT: Final = re.compile(r"\bCREATE\s+(?:SOURCE|SINK)\s+CONNECTOR\b", re.IGNORECASE)
_QUOTED: Final = r"'(?:[^']|'')*+(?:'|\Z)|\"(?:[^\"]|\"\")*+(?:\"|\Z)|`[^`]*+(?:`|\Z)"
_COMMENT: Final = r"--[^\n]*+|/\*.*?(?:\*/|\Z)"
_UNIT: Final = re.compile(rf"(?P<comment>{_COMMENT})|{_QUOTED}", re.DOTALL)
_WITH_COMMENTS: Final = re.compile(rf"{_COMMENT}|{_QUOTED}|[^\s='\"`/-]++|\s++|.", re.DOTALL)
_TOKEN: Final = re.compile(rf"{_QUOTED}|[^\s,;()='\"`]++|\s++|.", re.DOTALL)


def masked(text: str) -> str:
    """Return a request's text without the values of connectors' configurations, and secrets.

    The class is shown. Comments are left out, since a value may be in one.
    """
    return _without_secrets(_without_configurations(text))


def _without_secrets(text: str) -> str:
    """Hide what is stated for a quoted name that is one of a secret, and who a URL names."""
    return "".join(_stated(text)) if is_secret(text) or _SCHEME in text else text


def _stated(text: str) -> Iterator[str]:
    name = before = ""
    is_value = False
    for token in _WITH_COMMENTS.findall(text):
        if token.isspace() or token.startswith(("--", "/*")):
            yield token
            continue
        if is_value and token.startswith("'"):
            yield MASKED if is_secret(name) else without_secrets(token)
        else:
            yield token
        is_value = token in _EQUALS and before.startswith("'")
        name, before = before if is_value else "", token


def _without_configurations(text: str) -> str:
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
