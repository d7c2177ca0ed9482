"""Types as they are written in statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.ident import quote
from ksql.core.types.model import Array, Decimal, Map, Primitive, Struct

if TYPE_CHECKING:
    from ksql.core.types.model import SqlType


def type_text(type_: SqlType) -> str:
    """Return the type in SQL, with field names quoted only where they must be.

    The parser reads it back as the same type. (``str`` of a type is the form of messages and
    schemas, which quotes every field.)
    """
    match type_:
        case Primitive() | Decimal():
            return str(type_)
        case Array(item):
            return f"ARRAY<{type_text(item)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case Struct(fields):
            inner = ", ".join(f"{quote(field.name)} {type_text(field.type)}" for field in fields)
            return f"STRUCT<{inner}>"
