"""Equality and order of SQL values as Java's objects have them, and a function's errors."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable
from typing import Any, NoReturn

from ksql.core.types import DOUBLE, Array, Decimal, Map, SqlType, Struct


class EvaluationError(ValueError):
    """A function cannot work with the values of a row: the expression is NULL and logged."""


LONGEST_RESULT = 10_000_000
"""Characters or items: no record can hold more, and a worker's memory must not depend on a row."""


class ResultTooLong(EvaluationError):
    """A value of a row asks for a result that no record could hold."""

    def __init__(self, name: str, length: int) -> None:
        super().__init__(f"{name} would give a result of length {length}")


Identity = Callable[[Any], Hashable]


class NoOrder(EvaluationError):
    """Values of a type that has equality only."""

    def __init__(self, type_: SqlType) -> None:
        super().__init__(f"values of the type {type_} have no order")


def identity(type_: SqlType) -> Identity:
    """Return a function from a value to something hashable that is equal for equal values.

    As in Java, NaN equals itself, 0.0 differs from -0.0, and 1.0 differs from 1.00 in a DECIMAL.
    """
    match type_:
        case Array(item):
            of_item = identity(item)
            return lambda value: None if value is None else tuple(map(of_item, value))
        case Map(_, item):
            of_value = identity(item)
            return lambda value: (
                None if value is None else frozenset((k, of_value(v)) for k, v in value.items())
            )
        case Struct(fields):
            by_name = [(field.name, identity(field.type)) for field in fields]
            return lambda value: (
                None if value is None else tuple(of(value.get(name)) for name, of in by_name)
            )
        case Decimal():
            return lambda value: None if value is None else value.as_tuple()
        case _ if type_ == DOUBLE:
            return _double_bits
        case _:
            return _itself


def is_plain(type_: SqlType) -> bool:
    """Return whether Python's own equality and hash are the type's."""
    return identity(type_) is _itself


def membership(type_: SqlType) -> Callable[[list[Any], Any], bool]:
    """Return a function that checks whether a list of values of the type has a value."""
    if is_plain(type_):
        return lambda values, element: element in values
    of = identity(type_)
    return lambda values, element: of(element) in map(of, values)


def _itself(value: Any) -> Hashable:
    hashable: Hashable = value
    return hashable


def _double_bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack(">d", float("nan") if value != value else value)


def order(type_: SqlType) -> Callable[[Any], Any]:
    """Return a sort key for the type's values; among doubles -0.0 comes before 0.0, and NaN last.

    The key of an array, a map or a struct raises NoOrder.
    """
    if isinstance(type_, Array | Map | Struct):
        return _no_order(type_)
    return _double_order if type_ == DOUBLE else _itself


def _no_order(type_: SqlType) -> Callable[[Any], NoReturn]:
    def refuse(_value: Any) -> NoReturn:
        raise NoOrder(type_)

    return refuse


def _double_order(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if value != value else (False, value, math.copysign(1.0, value))
