"""PROTOBUF: messages with their schema's id and their place in the schema before them.

Source: docs/formats.md#protobuf; Confluent's wire format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError, EncodeError

from ksql.formats.implementation import Implementation, SerdeSpec, string_map_keys
from ksql.formats.protobuf import rows as proto_rows
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.kind import PROTOBUF, message_path, path_bytes
from ksql.formats.protobuf.schema import MAP_KEYS, Messages
from ksql.formats.protobuf.text import BrokenProtobuf
from ksql.formats.registered import registered_serde
from ksql.formats.serde import Serde, UnreadableValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Row
    from ksql.core.types import Column
    from ksql.formats.schema_registry import Schema

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


def _reader(messages: Messages, columns: tuple[Column, ...]) -> Callable[[bytes], Row]:
    """Return a function from a record's bytes to its row, whichever message of the schema it is."""
    readers: dict[tuple[int, ...], Callable[[bytes], Row] | UnreadableValue] = {}

    def build(path: tuple[int, ...]) -> Callable[[bytes], Row] | UnreadableValue:
        try:
            return proto_rows.row_reader(messages, messages.by_path(path), columns)
        except UnreadableValue as bad:
            return bad
        except BrokenProtobuf as error:  # no such message
            raise ValueError(error.message) from error

    def read(data: bytes) -> Row:
        path, start = message_path(data)
        row = readers.get(path)
        if row is None:
            row = readers[path] = build(path)
        if isinstance(row, UnreadableValue):
            raise UnreadableValue(row.message, row.path)
        return row(data[start:])

    return read


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the columns, which are always the fields of a message."""
    columns, full_name = spec.columns, spec.format.schema_full_name

    def messages(schema: Schema) -> Messages:
        whole = spec.whole(schema)
        return proto_schema.load(whole.text, whole.imported)

    def writer(schema: Schema, prefix: bytes) -> Callable[[Row], bytes]:
        loaded = messages(schema)
        path, message = loaded.chosen(full_name)
        return proto_rows.row_writer(loaded, message, columns, prefix + path_bytes(path))

    return registered_serde(
        spec,
        PROTOBUF,
        reader=lambda schema: _reader(messages(schema), columns),
        writer=writer,
        faults=_FAULTS,
    )


FORMAT = Implementation(serde, string_map_keys(MAP_KEYS), kind=PROTOBUF)
