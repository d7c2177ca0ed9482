"""Kafka Connect's types, which the schemas of all formats have in common, and how they become ours.

Avro, Protobuf and JSON schemas are read as these; inference and the rules of reading are then one.
Source: docs/formats.md#how-types-are-written.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ksql.core import KsqlError
from ksql.core.types import java_double, model
from ksql.formats.serde import BadText, UnreadableValue, Value, fitting

if TYPE_CHECKING:
    from ksql.core.types import SqlType


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """Connect's Decimal."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Items:
    """An array."""

    item: ConnectType


@dataclass(frozen=True, slots=True)
class Entries:
    """A map; ``listed`` if it is written as a list of objects of a key and a value."""

    key: ConnectType
    value: ConnectType
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record; ``required`` if a value must be written."""

    name: str
    type: ConnectType
    required: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A record, a message, an object; ``one_of``: what is written is the value of one member."""

    members: tuple[Member, ...]
    one_of: bool = False


@dataclass(frozen=True, slots=True)
class WithoutSqlType:
    """Something that has no SQL type; it matters only where it is looked at."""

    reason: str


MOST_TYPES: Final = 10_000
"""Of one schema, those that are named twice counted twice, as they would be in a row."""


class TypeBudget:
    """How many types a schema may still be spread out into.

    A schema of 2 kB can name types that hold each other twice, twenty levels deep.
    """

    def __init__(self) -> None:
        self._left = MOST_TYPES

    def full(self) -> WithoutSqlType | None:
        """Count one more type; return what stands for it if it is one too many."""
        self._left -= 1
        return TOO_MANY if self._left < 0 else None


ConnectType = Scalar | Number | Items | Entries | Group | WithoutSqlType

TOO_MANY: Final = WithoutSqlType(f"Schemas of more than {MOST_TYPES} types are not supported")
BOOLEAN, STRING, BYTES = Scalar("BOOLEAN"), Scalar("STRING"), Scalar("BYTES")
INT8, INT16, INT32, INT64 = Scalar("INT8"), Scalar("INT16"), Scalar("INT32"), Scalar("INT64")
FLOAT32, FLOAT64 = Scalar("FLOAT32"), Scalar("FLOAT64")
DATE, TIME, TIMESTAMP = Scalar("DATE"), Scalar("TIME"), Scalar("TIMESTAMP")

_SQL: Final[dict[Scalar, SqlType]] = {
    BOOLEAN: model.BOOLEAN,
    INT8: model.INTEGER,
    INT16: model.INTEGER,
    INT32: model.INTEGER,
    INT64: model.BIGINT,
    FLOAT32: model.DOUBLE,
    FLOAT64: model.DOUBLE,
    STRING: model.STRING,
    BYTES: model.BYTES,
    DATE: model.DATE,
    TIME: model.TIME,
    TIMESTAMP: model.TIMESTAMP,
}
_ACCEPTED: Final[dict[SqlType, frozenset[Scalar]]] = {
    model.BOOLEAN: frozenset({BOOLEAN}),
    model.INTEGER: frozenset({INT8, INT16, INT32}),
    model.BIGINT: frozenset({INT8, INT16, INT32, INT64}),
    model.DOUBLE: frozenset({FLOAT32, FLOAT64}),
    model.STRING: frozenset({INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING}),
    model.BYTES: frozenset({BYTES}),
    model.DATE: frozenset({DATE}),
    model.TIME: frozenset({TIME}),
    model.TIMESTAMP: frozenset({TIMESTAMP}),
}

_FLOAT: Final = struct.Struct(">f")
Convert = Callable[[Value], Value]


class NotInferable(KsqlError):
    """A schema, or a part of it, that no columns can be made of."""


def kind_name(type_: ConnectType) -> str:
    """Return the name of the type in messages."""
    match type_:
        case Scalar(name):
            return name
        case Number():
            return "DECIMAL"
        case Items():
            return "ARRAY"
        case Entries():
            return "MAP"
        case Group():
            return "STRUCT"
        case WithoutSqlType(reason):
            return reason


def mismatch(source: ConnectType, target: SqlType, path: str) -> UnreadableValue:
    """Return the error for a written type that a declared type cannot take."""
    return UnreadableValue(f"Cannot deserialize type {kind_name(source)} as type {target}", path)


def sql_type(type_: ConnectType, *, upper: bool = True) -> SqlType:
    """Return the SQL type that a schema's type becomes; ``upper``: with names in upper case.

    Raises: NotInferable.
    """
    match type_:
        case Scalar():
            return _SQL[type_]
        case Number(precision, scale):
            return model.Decimal(precision, scale)
        case Items(item):
            return model.Array(sql_type(item, upper=upper))
        case Entries(key, value):
            if key != STRING:
                raise NotInferable("Unsupported map key type: only STRING keys are supported")
            return model.Map(model.STRING, sql_type(value, upper=upper))
        case Group(members):
            fields = [(m.name.upper() if upper else m.name, m.type) for m in members]
            return model.Struct(tuple(model.Field(n, sql_type(t, upper=upper)) for n, t in fields))
        case WithoutSqlType(reason):
            raise NotInferable(reason)


def scalar_conversion(source: ConnectType, target: SqlType, path: str) -> Convert | None:
    """Return the conversion of a written scalar to the declared type; None where it is the same.

    Raises: UnreadableValue for types that do not go together.
    """
    if isinstance(source, Number) and isinstance(target, model.Decimal):
        return _fit(target.precision, target.scale)
    if not isinstance(source, Scalar) or source not in _ACCEPTED.get(target, ()):
        raise mismatch(source, target, path)
    if target == model.STRING:
        return _TEXTS.get(source, str if source != STRING else None)
    return None


def _fit(precision: int, scale: int) -> Convert:
    fit = fitting(precision, scale)

    def convert(value: Value) -> Value:
        try:
            return fit(value)
        except BadText as error:
            raise UnreadableValue(str(error), "") from None

    return convert


def _float_text(value: float) -> str:
    """Print as ``Float.toString``: the shortest text that gives the same four bytes."""
    if not math.isfinite(value):
        return java_double(value)
    packed = _FLOAT.pack(value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return java_double(float(next(text for text in texts if _four_bytes(text) == packed)))


def _four_bytes(text: str) -> bytes:
    try:
        return _FLOAT.pack(float(text))
    except OverflowError:  # rounded beyond the largest
        return b""


_TEXTS: Final[dict[Scalar, Any]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    FLOAT32: _float_text,
    FLOAT64: java_double,
}


def find_name(names: list[str], target: str) -> str | None:
    """Return the name that a column is read from: the exact one, else the last one but for case."""
    if target in names:
        return target
    upper = target.upper()
    return next((name for name in reversed(names) if name.upper() == upper), None)
