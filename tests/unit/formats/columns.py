"""Columns, types and values for the tests of formats."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.ints import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from ksql.core.types.model import SqlType
from ksql.core.types.schema import Column, Role
from ksql.formats.table import DecodeError


def value(name: str, type_: SqlType) -> Column:
    return Column(name, type_)


def key(name: str, type_: SqlType) -> Column:
    return Column(name, type_, Role.KEY)


def fail(index: int, error: DecodeError) -> None:
    raise AssertionError(f"{index}: {error}")


class Failures(list[tuple[int, str]]):
    """Collects what ``decode_many`` reports."""

    def __call__(self, index: int, error: DecodeError) -> None:
        self.append((index, error.message))


_LEAVES: dict[SqlType, st.SearchStrategy[object]] = {
    model.BOOLEAN: st.booleans(),
    model.INTEGER: st.integers(INT_MIN, INT_MAX),
    model.BIGINT: st.integers(LONG_MIN, LONG_MAX),
    model.DOUBLE: st.floats(allow_nan=False),
    model.STRING: st.text(st.characters(exclude_categories=["Cs"])),
    model.BYTES: st.binary(),
    model.DATE: st.integers(-100_000, 100_000),
    model.TIME: st.integers(0, 86_399_999),
    model.TIMESTAMP: st.integers(-(10**14), 10**14),
}
SCALARS = tuple(_LEAVES)


def scalar_types() -> st.SearchStrategy[SqlType]:
    decimals = st.integers(1, 30).flatmap(
        lambda precision: st.integers(0, precision).map(lambda s: model.Decimal(precision, s))
    )
    return st.sampled_from(SCALARS) | decimals


def types() -> st.SearchStrategy[SqlType]:
    names = st.lists(st.text("ABxy_`. é\"'{}\\", min_size=1, max_size=4), max_size=3, unique=True)

    def deeper(inner: st.SearchStrategy[SqlType]) -> st.SearchStrategy[SqlType]:
        structs = names.flatmap(
            lambda ns: st.tuples(*[inner] * len(ns)).map(
                lambda ts: model.Struct(
                    tuple(model.Field(n, t) for n, t in zip(ns, ts, strict=True))
                )
            )
        )
        maps = inner.map(lambda item: model.Map(model.STRING, item))
        return inner.map(model.Array) | maps | structs

    return st.recursive(scalar_types(), deeper, max_leaves=4)


def values(type_: SqlType) -> st.SearchStrategy[object]:
    return st.none() | _present(type_)


def _present(type_: SqlType) -> st.SearchStrategy[object]:
    match type_:
        case model.Decimal(precision, scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda n: Decimal(f"{n}E-{scale}"))
        case model.Array(item):
            return st.lists(values(item), max_size=3)
        case model.Map(_, item):
            return st.dictionaries(_LEAVES[model.STRING], values(item), max_size=3)
        case model.Struct(fields):
            names = [field.name for field in fields]
            members = st.tuples(*(values(field.type) for field in fields))
            return members.map(lambda value: dict(zip(names, value, strict=True)))
        case _:
            return _LEAVES[type_]


@st.composite
def rows(draw, column_types=None, most_columns=4):
    """Columns and a few rows of them."""
    chosen = draw(
        st.lists(
            types() if column_types is None else column_types, min_size=1, max_size=most_columns
        )
    )
    columns = tuple(value(f"C{i}", type_) for i, type_ in enumerate(chosen))
    return columns, draw(st.lists(st.tuples(*map(values, chosen)), max_size=3))


def same(a: object, b: object) -> bool:
    """Equal, with the scale of decimals and the sign of zero."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and str(a) == str(b)


def unsigned(value: Any) -> Any:
    """Return the value with 0.0 for -0.0, as numbers of JSON are read."""
    match value:
        case float():
            return value + 0.0
        case list() | tuple():
            return type(value)(map(unsigned, value))
        case dict():
            return {key: unsigned(item) for key, item in value.items()}
        case _:
            return value


def sorted_maps(value: object) -> object:
    """The value with its maps in the order of their keys: some formats keep none."""
    match value:
        case dict():
            return {key: sorted_maps(value[key]) for key in sorted(value)}
        case list():
            return [sorted_maps(item) for item in value]
        case tuple():
            return tuple(map(sorted_maps, value))
        case _:
            return value
