"""AVRO: records with their schema's id before them.

Source: docs/formats.md#avro.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ksql.formats.avro.kind import AVRO, node
from ksql.formats.avro.read import row_reader
from ksql.formats.avro.write import row_writer
from ksql.formats.implementation import Implementation, string_map_keys
from ksql.formats.registered import registered_serde

if TYPE_CHECKING:
    from ksql.formats.avro.tree import Node
    from ksql.formats.implementation import SerdeSpec
    from ksql.formats.schema_registry import Schema
    from ksql.formats.serde import Serde

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
