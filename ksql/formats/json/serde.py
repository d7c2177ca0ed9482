"""JSON: an object of the columns, or the value of a single one.

Source: docs/formats.md#json.
"""

from __future__ import annotations

from typing import Final

from ksql.formats.implementation import Implementation, SerdeSpec, string_map_keys
from ksql.formats.json.rows import printing, reader, writer
from ksql.formats.serde import Serde

MAP_KEYS: Final = "JSON only supports MAP types with STRING keys"


def serde(spec: SerdeSpec) -> Serde:
    """Return the JSON serde of the columns.

    Not wrapped: the document is the value of the only column.
    """
    decode, decode_many = reader(spec.columns, wrapped=spec.wrapped)
    encode, encode_many = writer(spec.columns, wrapped=spec.wrapped)
    documents = printing(spec.columns) if spec.wrapped else None
    return Serde(decode, encode, decode_many, encode_many, printing=documents)


FORMAT = Implementation(serde, string_map_keys(MAP_KEYS))
