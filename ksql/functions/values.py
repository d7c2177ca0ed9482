"""Equality and order of SQL values as Java's objects have them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from typing import Any

from ksql.types.model import DOUBLE, Array, Decimal, Map, SqlType, Struct

Identity = Callable[[Any], Hashable]


def identity(type_: SqlType) -> Identity:
    """A function from a value of the type to something hashable that is equal for equal values.

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
    """Whether Python's own equality and hash are the type's."""
    return identity(type_) is _itself


def _itself(value: Any) -> Hashable:
    hashable: Hashable = value
    return hashable


def _double_bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack(">d", float("nan") if value != value else value)


def order(type_: SqlType) -> Callable[[Any], Any]:
    """A sort key for the type's values; among doubles NaN comes last."""
    return _double_order if type_ == DOUBLE else _itself


def _double_order(value: float) -> tuple[bool, float]:
    return (True, 0.0) if value != value else (False, value)
