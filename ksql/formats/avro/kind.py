"""Avro's schemas for topics and registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.formats.avro import compat, parser, printer, strict
from ksql.formats.avro import schema as avro_schema
from ksql.formats.kind import Kind

if TYPE_CHECKING:
    from ksql.core.types.format import Format
    from ksql.core.types.schema import Column
    from ksql.formats.avro.tree import Node
    from ksql.formats.connect import ConnectType
    from ksql.formats.difference import Difference, Roles
    from ksql.formats.kind import Part, Whole


class _Avro(Kind):
    name = "AVRO"

    def connect_type(self, schema: Whole, _part: Part = None) -> ConnectType:
        return avro_schema.connect_type(node(schema))

    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        full_name = format_.schema_full_name
        return avro_schema.text_for(columns, wrapped=wrapped, full_name=full_name)

    def key_name(self, source: str) -> str:
        """Return ``...MyStreamKey`` for ``MY_STREAM``."""
        camel = "".join(part.capitalize() for part in source.split("_"))
        return f"{avro_schema.NAMESPACE}.{camel}Key"

    def canonical(self, schema: Whole, *, normalize: bool) -> str:
        return printer.canonical_text(_type(schema), normalize=normalize)

    def differences(self, reader: Whole, writer: Whole, roles: Roles) -> list[Difference]:
        return compat.differences(_type(reader), _type(writer), roles)


AVRO = _Avro()


def node(schema: Whole) -> Node:
    """Return the schema to read or write records with."""
    return parser.parse(schema.text, schema.imported.values())


def _type(schema: Whole) -> Node:
    return strict.parse(schema.text, schema.imported.values())
