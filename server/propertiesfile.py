"""The format of a ``.properties`` file; imports nothing of the service, as the terminal reads it.

Source: java.util.Properties, load(Reader).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PAIR = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs of a ``.properties`` text; the last of several equal names wins."""
    properties = {}
    for line in _logical_lines(text):
        pair = _PAIR.match(line)
        if pair:
            properties[_ESCAPE.sub(_plain, pair[1])] = _ESCAPE.sub(_plain, pair[2])
    return properties


def _plain(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _LETTERS.get(escape, escape)


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines without comments and blanks; one that ends in a backslash is joined."""
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        slashes = len(pending) - len(pending.rstrip("\\"))
        if slashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending
