"""Protobuf's schemas for topics and registries, and the record's index of its message.

The index says which of its schema's messages a record is.

Source: Confluent's wire format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.formats.kind import Difference, Kind, Part, Roles, SchemaWithImports
from ksql.formats.protobuf import compat, resolved
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.schema_registry import PREFIX_BYTES
from ksql.formats.serde import DecodeError

if TYPE_CHECKING:
    from ksql.core.types import Column, Format
    from ksql.formats.connect import ConnectType


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


class _Protobuf(Kind):
    name = "PROTOBUF"

    def connect_type(self, schema: SchemaWithImports, part: Part = None) -> ConnectType:
        messages = proto_schema.load(schema.text, schema.imported)
        descriptor = messages.by_path(part) if isinstance(part, tuple) else messages.chosen(part)[1]
        return proto_schema.connect_type(messages, descriptor)

    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        if not wrapped:
            raise ValueError("a single column of PROTOBUF is inside a message")
        return proto_schema.text_for(columns, format_)

    def part_of(self, data: bytes) -> Part:
        try:
            return message_path(data)[0]
        except (IndexError, ValueError) as error:
            raise DecodeError(f"Not a Protobuf message: {error}") from error

    def canonical(self, schema: SchemaWithImports, *, normalize: bool) -> str:
        resolved.parse(schema.text, schema.imported)
        return resolved.canonical_text(schema.text, schema.imported, normalize=normalize)

    def differences(
        self, reader: SchemaWithImports, writer: SchemaWithImports, roles: Roles
    ) -> list[Difference]:
        files = [resolved.parse(one.text, one.imported) for one in (reader, writer)]
        return compat.differences(files[0], files[1], roles)

    def identity(self, text: str) -> str:
        return resolved.identity(text)

    def serialized(self, schema: SchemaWithImports) -> str:
        return resolved.serialized(schema.text, schema.imported)


PROTOBUF = _Protobuf()
