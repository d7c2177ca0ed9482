"""The heads of ordinary requests: what means the same to every reader of HTTP/1.1.

A head that fits is framed by one Content-Length at most, is addressed to one host and asks for no
change of the protocol. Any other is for h11, which knows all that there is.
Source: RFC 9112.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LONGEST: Final = 8_192
_HEAD: Final = re.compile(
    rb"(GET|POST) (/[\x21-\x7e]*+) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t\x20-\x7e\x80-\xff]*+\r\n)++)\r\n"
)
_LONGEST_NUMBER: Final = 15
_KEPT: Final = (b"keep-alive", b"")
_CLOSED: Final = b"close"
# what these ask for takes more than an answer
_OTHERS: Final = frozenset((b"transfer-encoding", b"upgrade", b"expect", b"http2-settings"))


class Head(NamedTuple):
    """A request's head; ``end`` is where its body begins, ``length`` what it takes."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    end: int
    length: int
    closes: bool


def ordinary(data: bytes) -> Head | None:
    """Return the head that the bytes begin with; None if it is no ordinary one, or not whole."""
    match = _HEAD.match(data)
    if match is None or match.end() > _LONGEST:
        return None
    headers = []
    hosts, length, closes = 0, None, False
    for line in match[3].splitlines():
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        headers.append((name, value))
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            if length is not None or not value.isdigit() or len(value) > _LONGEST_NUMBER:
                return None
            length = int(value)
        elif name == b"connection":
            wish = value.lower()
            if closes or wish not in (*_KEPT, _CLOSED):
                return None
            closes = wish == _CLOSED
        elif name in _OTHERS:
            return None
    if hosts != 1:
        return None
    return Head(match[1].decode(), match[2], headers, match.end(), length or 0, closes)
