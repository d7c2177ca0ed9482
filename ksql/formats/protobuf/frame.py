"""The part of a record that says which of its schema's messages it is.

Source: Confluent's wire format.
"""

from __future__ import annotations

from typing import Final

from ksql.formats.schema_registry import PREFIX_BYTES

_MOST_NESTED: Final = 100


def _number(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag number and the place after it."""
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def message_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return which message it is, and where it begins.

    A lone zero is short for the first message.
    """
    count, position = _number(data, PREFIX_BYTES)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MOST_NESTED:
        raise ValueError("the path to the message is broken")
    path = []
    for _ in range(count):
        index, position = _number(data, position)
        if index < 0:
            raise ValueError("the path to the message is broken")
        path.append(index)
    return tuple(path), position


def path_bytes(path: tuple[int, ...]) -> bytes:
    """Return the path as it is written before a message."""
    if path == (0,):
        return b"\0"
    return b"".join(map(_zigzag, (len(path), *path)))


def _zigzag(value: int) -> bytes:
    number = value << 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
