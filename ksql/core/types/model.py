"""SQL's types, and their text in statements: printed and parsed.

Values look the same everywhere at run time: in decoded rows, functions and state. BOOLEAN is bool;
INTEGER and BIGINT int; DOUBLE float; DECIMAL decimal.Decimal; STRING str; BYTES bytes. DATE is int
(epoch days); TIME int (milliseconds of the day); TIMESTAMP int (epoch milliseconds). ARRAY is list;
MAP dict; STRUCT a dict from field name to value (all fields, declared order). NULL is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ksql.core.ident import quote, quote_always


class Kind(Enum):
    """The types without parameters."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    NULL = "NULL"  # the type of an untyped NULL literal; never the type of a column
    INTERVAL = "INTERVALUNIT"  # a unit keyword given to DATEADD and its like


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters."""

    kind: Kind

    def __str__(self) -> str:
        return self.kind.value


@dataclass(frozen=True, slots=True)
class Decimal:
    """DECIMAL(precision, scale); precision has no upper bound."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """ARRAY<item>."""

    item: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map:
    """MAP<key, value>."""

    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a STRUCT."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{quote_always(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class Struct:
    """STRUCT<name type, ...>."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields))}>"

    def field(self, name: str) -> Field | None:
        """Return the field of that exact name, or None."""
        return next((field for field in self.fields if field.name == name), None)


SqlType = Primitive | Decimal | Array | Map | Struct

BOOLEAN = Primitive(Kind.BOOLEAN)
INTEGER = Primitive(Kind.INTEGER)
BIGINT = Primitive(Kind.BIGINT)
DOUBLE = Primitive(Kind.DOUBLE)
STRING = Primitive(Kind.STRING)
BYTES = Primitive(Kind.BYTES)
DATE = Primitive(Kind.DATE)
TIME = Primitive(Kind.TIME)
TIMESTAMP = Primitive(Kind.TIMESTAMP)
NULL = Primitive(Kind.NULL)
INTERVAL = Primitive(Kind.INTERVAL)

PRIMITIVES: dict[str, SqlType] = {
    "BOOLEAN": BOOLEAN,
    "INTEGER": INTEGER,
    "INT": INTEGER,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}
"""The types without parameters by their names and aliases."""


def duplicate_fields(fields: tuple[Field, ...]) -> str:
    """Describe the fault of fields of which two have the same name; empty if none have."""
    seen: dict[str, Field] = {}
    for field in fields:
        known = seen.get(field.name)
        if known is not None:
            return f"Duplicate field names found in STRUCT: '{known}' and '{field}'"
        seen[field.name] = field
    return ""


def base_name(type_: SqlType) -> str:
    """Return the type's name without its parameters.

    DECIMAL, ARRAY, MAP, STRUCT, BIGINT and so on.
    """
    return type_.kind.value if isinstance(type_, Primitive) else type(type_).__name__.upper()


def is_numeric(type_: SqlType) -> bool:
    """Return whether the type is INTEGER, BIGINT, DECIMAL or DOUBLE."""
    return isinstance(type_, Decimal) or type_ in (INTEGER, BIGINT, DOUBLE)


def holds_null(type_: SqlType) -> bool:
    """Return whether a part of the type is not known: that of a NULL which nothing gives a type."""
    match type_:
        case Array(item):
            return holds_null(item)
        case Map(key, value):
            return holds_null(key) or holds_null(value)
        case Struct(fields):
            return any(holds_null(field.type) for field in fields)
        case _:
            return type_ == NULL


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
