"""Fits the type of an argument to a declared parameter."""

from __future__ import annotations

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
from ksql.types import coerce, decimals, model
from ksql.types.model import SqlType

Bindings = dict[str, SqlType]


def fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    """Return the type that the argument takes in that parameter, or None if it does not fit.

    ``bound`` collects what the type variables stand for. A NULL fits everywhere and stays NULL
    here.
    Source: docs/functions.md#which-overload-is-called.
    """
    if given == model.NULL:
        return None if isinstance(pattern, Fn) else model.NULL
    return _fit(pattern, given, bound, casts and not has_vars(pattern))


def _fit(pattern: Pattern, given: SqlType, bound: Bindings, casts: bool) -> SqlType | None:
    match pattern, given:
        case Var(name), _:
            return given if bound.setdefault(name, given) == given else None
        case AnyType(), _:
            return given
        case Exact(wanted), _:
            return wanted if given == wanted or (casts and _castable(given, wanted)) else None
        case AnyDecimal(), model.Decimal():
            return given
        case AnyDecimal(), _:
            return decimals.as_decimal(given) if casts else None
        case ArrayOf(item), model.Array(actual):
            inner = _fit(item, actual, bound, casts)
            return model.Array(inner) if inner else None
        case MapOf(key, value), model.Map(actual_key, actual_value):
            new_key = _fit(key, actual_key, bound, casts)
            new_value = _fit(value, actual_value, bound, casts)
            return model.Map(new_key, new_value) if new_key and new_value else None
        case StructOf(fields), model.Struct(actual_fields) if len(fields) == len(actual_fields):
            same = all(
                name == field.name and _fit(type_, field.type, bound, False)
                for (name, type_), field in zip(fields, actual_fields, strict=True)
            )
            return given if same else None
        case _:
            return None


def _castable(given: SqlType, target: SqlType) -> bool:
    if isinstance(given, model.Decimal):
        return target == model.DOUBLE
    if isinstance(target, model.Decimal):
        whole = decimals.as_decimal(given)
        return whole is not None and decimals.holds(target, whole)
    return target in coerce.WIDER.get(given, ())


def substitute(pattern: Pattern, bound: Bindings) -> SqlType:
    """Return the concrete type of a pattern; a variable that nothing bound is NULL."""
    match pattern:
        case Var(name):
            return bound.get(name, model.NULL)
        case Exact(type_):
            return type_
        case ArrayOf(item):
            return model.Array(substitute(item, bound))
        case MapOf(key, value):
            return model.Map(substitute(key, bound), substitute(value, bound))
        case StructOf(fields):
            return model.Struct(
                tuple(model.Field(name, substitute(type_, bound)) for name, type_ in fields)
            )
        case Fn(_, returns):
            return substitute(returns, bound)
        case AnyType() | AnyDecimal():
            return model.NULL


def show(type_: SqlType) -> str:
    """Return the type as messages name it: field names without quotes, NULL in small letters."""
    match type_:
        case model.Array(item):
            return f"ARRAY<{show(item)}>"
        case model.Map(key, value):
            return f"MAP<{show(key)}, {show(value)}>"
        case model.Struct(fields):
            return f"STRUCT<{', '.join(f'{field.name} {show(field.type)}' for field in fields)}>"
        case _:
            return "null" if type_ == model.NULL else str(type_)
