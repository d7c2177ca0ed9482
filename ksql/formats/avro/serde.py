"""AVRO: records with their schema's id before them, and its schemas for topics and registries.

Source: docs/formats.md#avro.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ksql.formats.avro import compat, strict, text
from ksql.formats.avro import schema as avro_schema
from ksql.formats.avro.read import row_reader
from ksql.formats.avro.write import row_writer
from ksql.formats.implementation import Implementation, SerdeSpec, string_map_keys
from ksql.formats.kind import Difference, Kind, Part, Roles, SchemaWithImports
from ksql.formats.registered import registered_serde

if TYPE_CHECKING:
    from ksql.core.types import Column, Format
    from ksql.formats.avro.tree import Node
    from ksql.formats.connect import ConnectType
    from ksql.formats.schema_registry import Schema
    from ksql.formats.serde import Serde


class _Avro(Kind):
    name = "AVRO"

    def connect_type(self, schema: SchemaWithImports, _part: Part = None) -> ConnectType:
        return avro_schema.connect_type(node(schema))

    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        full_name = format_.schema_full_name
        return avro_schema.text_for(columns, wrapped=wrapped, full_name=full_name)

    def key_name(self, source: str) -> str:
        """Return ``...MyStreamKey`` for ``MY_STREAM``."""
        camel = "".join(part.capitalize() for part in source.split("_"))
        return f"{avro_schema.NAMESPACE}.{camel}Key"

    def canonical(self, schema: SchemaWithImports, *, normalize: bool) -> str:
        return text.canonical_text(_type(schema), normalize=normalize)

    def differences(
        self, reader: SchemaWithImports, writer: SchemaWithImports, roles: Roles
    ) -> list[Difference]:
        return compat.differences(_type(reader), _type(writer), roles)


AVRO = _Avro()


def node(schema: SchemaWithImports) -> Node:
    """Return the schema to read or write records with."""
    return text.parse(schema.text, schema.imported.values())


def _type(schema: SchemaWithImports) -> Node:
    return strict.parse(schema.text, schema.imported.values())


_FAULTS = (
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
)


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the columns; our schema is looked up or registered at the first write."""
    columns, wrapped = spec.columns, spec.wrapped

    def nodes(schema: Schema) -> Node:
        return node(spec.whole(schema))

    return registered_serde(
        spec,
        AVRO,
        reader=lambda schema: row_reader(nodes(schema), columns, wrapped=wrapped),
        writer=lambda schema, prefix: row_writer(nodes(schema), columns, prefix, wrapped=wrapped),
        faults=_FAULTS,
    )


FORMAT = Implementation(
    serde, string_map_keys("Avro only supports MAPs with STRING keys"), kind=AVRO
)
