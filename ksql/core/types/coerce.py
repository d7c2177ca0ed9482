"""Conversions between types: what happens by itself, what CAST allows, how values are converted.

A caster gets a value that is not NULL and returns one, or raises ValueError or ArithmeticError for
a value that it cannot convert. Source: docs/sql/types.md#conversions.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ksql.core.types import decimals, ints, model, times
from ksql.core.types.render import java_double, stringer

if TYPE_CHECKING:
    from ksql.core.types.model import SqlType

Caster = Callable[[Any], Any]

_INT = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_JAVA_SUFFIXES = ("d", "D", "f", "F")
_FALSE_WORDS = ("false", "no")
_TRUE_WORDS = ("true", "yes")


class CastNotSupported(TypeError):
    """There is no conversion between these types."""

    def __init__(self, source: SqlType, target: SqlType) -> None:
        super().__init__(f"Cast of {source} to {target} is not supported")


def parse_boolean(text: str) -> bool:
    """Return True for any beginning of ``true`` or ``yes``; everything else is false."""
    word = text.strip().lower()
    return bool(word) and any(true.startswith(word) for true in _TRUE_WORDS)


def parse_boolean_word(text: str) -> bool:
    """Parse a beginning of ``true``, ``yes``, ``false`` or ``no``.

    Raises: ValueError.
    """
    word = text.strip().lower()
    if parse_boolean(word):
        return True
    if not word or not any(false.startswith(word) for false in _FALSE_WORDS):
        raise ValueError(f'invalid input syntax for type BOOLEAN: "{text}"')
    return False


def _integer(low: int, high: int) -> Caster:
    def parse(text: str) -> int:
        stripped = text.strip()
        if not _INT.match(stripped) or not low <= (value := int(stripped)) <= high:
            raise ValueError(f'For input string: "{text}"')
        return value

    return parse


parse_integer = _integer(ints.INT_MIN, ints.INT_MAX)
parse_bigint = _integer(ints.LONG_MIN, ints.LONG_MAX)


def parse_double(text: str) -> float:
    """Return a finite double.

    Raises: ValueError.
    """
    stripped = text.strip()
    digits = stripped[:-1] if stripped[-1:] in _JAVA_SUFFIXES else stripped
    if not _NUMBER.match(digits):
        raise ValueError(f'For input string: "{text}"')
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f'"{text}" is out of the range of DOUBLE')
    return value


def parse_number(text: str) -> decimal.Decimal:
    """Return a decimal of any size.

    Raises: ValueError.
    """
    stripped = text.strip()
    if not _NUMBER.match(stripped):
        raise ValueError(f'For input string: "{text}"')
    return decimal.Decimal(stripped)


def parse_base64(text: str) -> bytes:
    """Return the bytes that Base64 text stands for; the padding may be missing.

    Raises: ValueError.
    """
    stripped = text.strip()
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f'"{text}" is not Base64: {error}') from error


def _truncate(wrap: Callable[[int], int]) -> Caster:
    return lambda value: wrap(int(value))


def _same(value: Any) -> Any:
    return value


_SCALARS: dict[tuple[SqlType, SqlType], Caster] = {
    (model.BOOLEAN, model.STRING): lambda value: "true" if value else "false",
    (model.INTEGER, model.BIGINT): _same,
    (model.INTEGER, model.DOUBLE): float,
    (model.INTEGER, model.STRING): str,
    (model.BIGINT, model.INTEGER): ints.wrap32,
    (model.BIGINT, model.DOUBLE): float,
    (model.BIGINT, model.STRING): str,
    (model.DOUBLE, model.INTEGER): lambda value: ints.saturate(value, ints.INT_MIN, ints.INT_MAX),
    (model.DOUBLE, model.BIGINT): lambda value: ints.saturate(value, ints.LONG_MIN, ints.LONG_MAX),
    (model.DOUBLE, model.STRING): java_double,
    (model.STRING, model.BOOLEAN): parse_boolean,
    (model.STRING, model.INTEGER): parse_integer,
    (model.STRING, model.BIGINT): parse_bigint,
    (model.STRING, model.DOUBLE): parse_double,
    (model.STRING, model.TIMESTAMP): times.parse_timestamp,
    (model.STRING, model.TIME): times.parse_time,
    (model.STRING, model.DATE): times.parse_date,
    (model.STRING, model.BYTES): parse_base64,
    (model.TIMESTAMP, model.STRING): times.format_timestamp,
    (model.TIMESTAMP, model.TIME): lambda value: value % times.DAY_MS,
    (model.TIMESTAMP, model.DATE): lambda value: value // times.DAY_MS,
    (model.DATE, model.STRING): times.format_date,
    (model.DATE, model.TIMESTAMP): lambda value: value * times.DAY_MS,
    (model.TIME, model.STRING): times.format_time,
}
_FROM_DECIMAL: dict[SqlType, Caster] = {
    model.INTEGER: _truncate(ints.wrap32),
    model.BIGINT: _truncate(ints.wrap64),
    model.DOUBLE: float,
    model.STRING: lambda value: format(value, "f"),
}
WIDER: dict[SqlType, tuple[SqlType, ...]] = {
    model.INTEGER: (model.BIGINT, model.DOUBLE),
    model.BIGINT: (model.DOUBLE,),
    model.STRING: (model.DATE, model.TIME, model.TIMESTAMP, model.BYTES),
}
"""The types that a value turns into by itself; DECIMAL is between BIGINT and DOUBLE."""


def can_coerce(source: SqlType, target: SqlType) -> bool:
    """Return whether a value of the one type becomes the other by itself, without loss."""
    if source in (target, model.NULL):
        return True
    match source, target:
        case _, model.Decimal():
            narrow = decimals.as_decimal(source)
            return narrow is not None and decimals.holds(target, narrow)
        case model.Decimal(), _:
            return target == model.DOUBLE
        case model.Array(a), model.Array(b):
            return can_coerce(a, b)
        case model.Map(k1, v1), model.Map(k2, v2):
            return can_coerce(k1, k2) and can_coerce(v1, v2)
        case model.Struct(fields), model.Struct():
            return all(
                (other := target.field(field.name)) and can_coerce(field.type, other.type)
                for field in fields
            )
        case _:
            return target in WIDER.get(source, ())


def caster(source: SqlType, target: SqlType) -> Caster:
    """Return the function that CASTs values that are not NULL.

    Raises: CastNotSupported.
    """
    if source in (target, model.NULL):
        return _same
    match source, target:
        case _, model.Decimal():
            return _to_decimal(source, target)
        case model.Decimal(), _ if target in _FROM_DECIMAL:
            return _FROM_DECIMAL[target]
        case ((model.Array() | model.Map() | model.Struct()), model.STRING):
            return stringer(source)
        case model.Array(a), model.Array(b):
            item = _nullable(caster(a, b))
            return lambda value: [item(element) for element in value]
        case model.Map(k1, v1), model.Map(k2, v2):
            key, item = _nullable(caster(k1, k2)), _nullable(caster(v1, v2))
            return lambda value: {key(k): item(v) for k, v in value.items()}
        case model.Struct(), model.Struct():
            return _to_struct(source, target)
        case _ if (source, target) in _SCALARS:
            return _SCALARS[source, target]
        case _:
            raise CastNotSupported(source, target)


def _to_decimal(source: SqlType, target: model.Decimal) -> Caster:
    rounded = decimals.fitter(target, exact=False)
    match source:
        case model.Decimal():
            return rounded
        case model.DOUBLE:
            return decimals.from_double(target)
        case model.INTEGER | model.BIGINT:
            return lambda value: rounded(decimal.Decimal(value))
        case model.STRING:
            return lambda value: rounded(parse_number(value))
        case _:
            raise CastNotSupported(source, target)


def _to_struct(source: model.Struct, target: model.Struct) -> Caster:
    """Return a cast by field names: missing ones become NULL, further ones are dropped."""
    fields: list[tuple[str, Caster]] = []
    for field in target.fields:
        old = source.field(field.name)
        fields.append((field.name, _nullable(caster(old.type, field.type)) if old else _nothing))
    return lambda value: {name: convert(value.get(name)) for name, convert in fields}


def _nothing(_value: Any) -> None:
    return None


def _nullable(convert: Caster) -> Caster:
    if convert is _same:
        return _same
    return lambda value: None if value is None else convert(value)
