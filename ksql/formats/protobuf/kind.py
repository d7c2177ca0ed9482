"""Protobuf's schemas for topics and registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.formats.kind import Kind
from ksql.formats.protobuf import compat, resolved
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.frame import message_path
from ksql.formats.serde import DecodeError

if TYPE_CHECKING:
    from ksql.core.types.format import Format
    from ksql.core.types.schema import Column
    from ksql.formats.connect import ConnectType
    from ksql.formats.difference import Difference, Roles
    from ksql.formats.kind import Part, Whole


class _Protobuf(Kind):
    name = "PROTOBUF"

    def connect_type(self, schema: Whole, part: Part = None) -> ConnectType:
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

    def canonical(self, schema: Whole, *, normalize: bool) -> str:
        resolved.parse(schema.text, schema.imported)
        return resolved.canonical_text(schema.text, schema.imported, normalize=normalize)

    def differences(self, reader: Whole, writer: Whole, roles: Roles) -> list[Difference]:
        files = [resolved.parse(one.text, one.imported) for one in (reader, writer)]
        return compat.differences(files[0], files[1], roles)

    def identity(self, text: str) -> str:
        return resolved.identity(text)

    def serialized(self, schema: Whole) -> str:
        return resolved.serialized(schema.text, schema.imported)


PROTOBUF = _Protobuf()
