"""PROTOBUF_NOSR: messages whose schema follows from the declared columns; no registry.

Source: docs/formats.md#protobuf.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError as BrokenMessage

from ksql.formats.implementation import Implementation, SerdeSpec, string_map_keys
from ksql.formats.protobuf import rows as proto_rows
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.schema import MAP_KEYS
from ksql.formats.serde import DecodeError, EncodeError, Serde, UnreadableValue, serde_of

if TYPE_CHECKING:
    from ksql.core import Row
    from ksql.core.types import Column, Format

_UNWRITABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


def text_for(columns: tuple[Column, ...], format_: Format) -> str:
    """Return the schema that follows from the columns.

    Raises: NotProtobuf.
    """
    return proto_schema.text_for(columns, replace(format_, schema_full_name=None))


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the columns; fields are numbered in their order.

    Not wrapped: a single null is no bytes at all. Raises: NotProtobuf.
    """
    columns, wrapped = spec.columns, spec.wrapped
    messages = proto_schema.load(text_for(columns, spec.format))
    _, message = messages.chosen(None)
    row = proto_rows.row_reader(messages, message, columns)
    write = proto_rows.row_writer(messages, message, columns, b"")

    def decode(data: bytes) -> Row:
        try:
            return row(data)
        except UnreadableValue as bad:
            raise DecodeError(bad.message, f"${bad.path}") from None
        except (BrokenMessage, ValueError, OverflowError, RecursionError) as error:
            raise DecodeError(f"Not a Protobuf message: {error}") from error

    def encode(values: Row) -> bytes | None:
        if not wrapped and values[0] is None:
            return None
        try:
            return write(values)
        except _UNWRITABLE as error:
            raise EncodeError(f"Cannot write as Protobuf: {error}") from error

    return serde_of(decode, encode)


FORMAT = Implementation(serde, string_map_keys(MAP_KEYS), check=text_for)
