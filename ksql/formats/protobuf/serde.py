"""PROTOBUF: messages with their schema's id and their place in the schema before them.

Source: docs/formats.md#protobuf; Confluent's wire format.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError, EncodeError

from ksql.formats.protobuf import rows as proto_rows
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.text import BrokenProtobuf
from ksql.formats.registered import registered_serde
from ksql.formats.schema_registry import PREFIX_BYTES, Schema, referenced
from ksql.formats.serde import Bad

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.formats.protobuf.schema import Messages
    from ksql.formats.schema_registry import Registry
    from ksql.formats.serde import Row, Serde
    from ksql.types.format import Format
    from ksql.types.schema import Column

_FAULTS = (
    AttributeError,
    DecodeError,
    EncodeError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
)
_MOST_NESTED = 100


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A zigzag number and the place behind it."""
    found = shift = 0
    while True:
        byte = data[place]
        place += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return (found >> 1) ^ -(found & 1), place
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def message_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """Which message it is, and where it begins; a lone zero is short for the first message."""
    count, place = _number(data, PREFIX_BYTES)
    if count == 0:
        return (0,), place
    if not 0 < count <= _MOST_NESTED:
        raise ValueError("the path to the message is broken")
    path = []
    for _ in range(count):
        index, place = _number(data, place)
        if index < 0:
            raise ValueError("the path to the message is broken")
        path.append(index)
    return tuple(path), place


def _path_bytes(path: tuple[int, ...]) -> bytes:
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


def _reader(messages: Messages, columns: tuple[Column, ...]) -> Callable[[bytes], Row]:
    """A function from a record's bytes to its row, whichever message of the schema it is."""
    readers: dict[tuple[int, ...], Callable[[bytes], Row] | Bad] = {}

    def made(path: tuple[int, ...]) -> Callable[[bytes], Row] | Bad:
        try:
            return proto_rows.row_reader(messages, messages.by_path(path), columns)
        except Bad as bad:
            return bad
        except BrokenProtobuf as error:  # no such message
            raise ValueError(error.message) from error

    def read(data: bytes) -> Row:
        path, place = message_path(data)
        row = readers.get(path)
        if row is None:
            row = readers[path] = made(path)
        if isinstance(row, Bad):
            raise Bad(row.message, row.path)
        return row(data[place:])

    return read


def serde(
    columns: tuple[Column, ...],
    *,
    wrapped: bool,
    registry: Registry,
    subject: str,
    format_: Format,
) -> Serde:
    """The serde of the columns, which are always the fields of a message."""
    if not wrapped:
        raise ValueError("a single column of PROTOBUF stands in a message")

    def messages(schema: Schema) -> Messages:
        return proto_schema.load(schema.text, referenced(registry, schema))

    def writer(schema: Schema, prefix: bytes) -> Callable[[Row], bytes]:
        found = messages(schema)
        path, message = found.chosen(format_.schema_full_name)
        return proto_rows.row_writer(found, message, columns, prefix + _path_bytes(path))

    return registered_serde(
        registry,
        subject,
        schema_id=format_.schema_id,
        ours=partial(_ours, columns, format_),
        reader=lambda schema: _reader(messages(schema), columns),
        writer=writer,
        faults=_FAULTS,
    )


def _ours(columns: tuple[Column, ...], format_: Format) -> Schema:
    return Schema("PROTOBUF", proto_schema.text_for(columns, format_))
