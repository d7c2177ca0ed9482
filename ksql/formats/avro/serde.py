"""AVRO: records with their schema's id before them.

Source: docs/formats.md#avro.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ksql.formats.avro import schema as avro_schema
from ksql.formats.avro.read import row_reader
from ksql.formats.avro.write import row_writer
from ksql.formats.registered import registered_serde
from ksql.formats.schema_registry import Schema, referenced

if TYPE_CHECKING:
    from ksql.formats.schema_registry import Registry
    from ksql.formats.serde import Serde
    from ksql.types.format import Format
    from ksql.types.schema import Column

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


def serde(
    columns: tuple[Column, ...],
    *,
    wrapped: bool,
    registry: Registry,
    subject: str,
    format_: Format,
) -> Serde:
    """The serde of the columns; our schema is looked up or registered at the first write."""

    def nodes(schema: Schema) -> avro_schema.Node:
        return avro_schema.parse(schema.text, referenced(registry, schema).values())

    def ours() -> Schema:
        text = avro_schema.text_for(columns, wrapped=wrapped, full_name=format_.schema_full_name)
        return Schema("AVRO", text)

    return registered_serde(
        registry,
        subject,
        schema_id=format_.schema_id,
        ours=ours,
        reader=lambda schema: row_reader(nodes(schema), columns, wrapped=wrapped),
        writer=lambda schema, prefix: row_writer(nodes(schema), columns, prefix, wrapped=wrapped),
        faults=_FAULTS,
    )
