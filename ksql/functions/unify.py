"""Fits the type of an argument to a declared parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.functions.signature import (
    AnyDecimal,
    AnyType,
    ArrayOf,
    Exact,
    Fn,
    MapOf,
    Pattern,
    StructOf,
    Var,
    has_vars,
)
from ksql.types.model import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Bindings = dict[str, SqlType]

# To what a value turns into by itself; DECIMAL stands between BIGINT and DOUBLE.
_CASTS: Mapping[SqlType, tuple[SqlType, ...]] = {
    INTEGER: (BIGINT, DOUBLE),
    BIGINT: (DOUBLE,),
    STRING: (DATE, TIME, TIMESTAMP, BYTES),
}
_AS_DECIMAL: Mapping[SqlType, Decimal] = {INTEGER: Decimal(10, 0), BIGINT: Decimal(19, 0)}


def fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    """The type that the argument takes in that parameter, or None if it does not fit.

    ``bound`` collects what the type variables stand for. A NULL fits everywhere and stays NULL
    here.
    Source: docs/functions.md#which-overload-is-called.
    """
    if given == NULL:
        return None if isinstance(pattern, Fn) else NULL
    return _fit(pattern, given, bound, casts and not has_vars(pattern))


def _fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    match pattern, given:
        case Var(name), _:
            return given if bound.setdefault(name, given) == given else None
        case AnyType(), _:
            return given
        case Exact(wanted), _:
            return wanted if given == wanted or (casts and _castable(given, wanted)) else None
        case AnyDecimal(), Decimal():
            return given
        case AnyDecimal(), _:
            return _AS_DECIMAL.get(given) if casts else None
        case ArrayOf(item), Array(actual):
            inner = _fit(item, actual, bound, casts)
            return Array(inner) if inner else None
        case MapOf(key, value), Map(actual_key, actual_value):
            new_key = _fit(key, actual_key, bound, casts)
            new_value = _fit(value, actual_value, bound, casts)
            return Map(new_key, new_value) if new_key and new_value else None
        case StructOf(fields), Struct(actual_fields) if len(fields) == len(actual_fields):
            same = all(
                name == field.name and _fit(type_, field.type, bound, False)
                for (name, type_), field in zip(fields, actual_fields, strict=True)
            )
            return given if same else None
        case _:
            return None


def _castable(given: SqlType, wanted: SqlType) -> bool:
    if isinstance(given, Decimal):
        return wanted == DOUBLE
    if isinstance(wanted, Decimal):
        widened = _AS_DECIMAL.get(given)
        return widened is not None and (
            widened.precision - widened.scale <= wanted.precision - wanted.scale
        )
    return wanted in _CASTS.get(given, ())


def substitute(pattern: Pattern, bound: Bindings) -> SqlType:
    """The concrete type of a pattern; a variable that nothing bound is NULL."""
    match pattern:
        case Var(name):
            return bound.get(name, NULL)
        case Exact(type_):
            return type_
        case ArrayOf(item):
            return Array(substitute(item, bound))
        case MapOf(key, value):
            return Map(substitute(key, bound), substitute(value, bound))
        case StructOf(fields):
            return Struct(tuple(Field(name, substitute(type_, bound)) for name, type_ in fields))
        case Fn(_, returns):
            return substitute(returns, bound)
        case AnyType() | AnyDecimal():
            return NULL


def show(type_: SqlType) -> str:
    """The type as messages name it: field names without quotes, NULL in small letters."""
    match type_:
        case Array(item):
            return f"ARRAY<{show(item)}>"
        case Map(key, value):
            return f"MAP<{show(key)}, {show(value)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{field.name} {show(field.type)}' for field in fields)}>"
        case _:
            return "null" if type_ == NULL else str(type_)
