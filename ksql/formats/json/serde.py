"""JSON: an object of the columns, or the value of a single one.

Source: docs/formats.md#json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.formats.json.rows import reader, writer
from ksql.formats.serde import Serde

if TYPE_CHECKING:
    from ksql.types.schema import Column


def serde(columns: tuple[Column, ...], *, wrapped: bool) -> Serde:
    """The JSON serde of the columns; not wrapped: the document is the value of the only column."""
    decode, decode_many = reader(columns, wrapped=wrapped)
    encode, encode_many = writer(columns, wrapped=wrapped)
    return Serde(decode, encode, decode_many, encode_many)
