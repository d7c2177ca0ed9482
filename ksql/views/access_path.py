"""The keys and windows of a table that a pull query's condition allows: which rows are read.

A condition is looked at as alternatives (OR) of conjunctions (AND); each has to limit the key for
itself. The rows that are read are never less than the condition allows: it is evaluated for each.
Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from ksql.core.types import BYTES, STRING, WINDOWEND, WINDOWSTART, capabilities, decimals, model
from ksql.sql.binder import bound as b
from ksql.views.stores.base import after

if TYPE_CHECKING:
    from ksql.core.types import Column, SqlType
    from ksql.sql.binder import Bound
    from ksql.sql.catalog import DataSource

T = TypeVar("T")
_MOST_LOOKUPS = 1000
MOST_ALTERNATIVES = 1000  # as many as ``where`` takes for look-ups
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_LATEST = 2**63 - 1
_NO_TEXT = re.compile(r"[%_\\]")
"""What does not stand for itself in a pattern of LIKE."""
KeyRange = tuple[bytes | None, bytes | None]
"""The first key and the one after the last; None leaves that side open."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Which windows a condition allows at most, by their starts and by their ends."""

    first_start: int = 0
    last_start: int = _LATEST
    first_end: int = 0
    last_end: int = _LATEST

    def ends(self, size_ms: int | None) -> tuple[int, int]:
        """Return the first and last time by which such windows are ordered.

        That is the start of a window of one size, the end of a session.
        """
        if size_ms is None:
            return max(self.first_start, self.first_end), self.last_end
        first = max(self.first_start, self.first_end - size_ms)
        return first, min(self.last_start, self.last_end - size_ms)

    def __or__(self, other: Windows) -> Windows:
        """Return what either allows, and perhaps more."""
        return Windows(
            min(self.first_start, other.first_start),
            max(self.last_start, other.last_start),
            min(self.first_end, other.first_end),
            max(self.last_end, other.last_end),
        )


@dataclass(frozen=True, slots=True)
class ByKey:
    """These keys are looked up; of windowed tables these windows of each."""

    keys: Sequence[tuple[Any, ...]]
    windows: Windows = Windows()


@dataclass(frozen=True, slots=True)
class ByRange:
    """These ranges of keys are read; they do not overlap."""

    ranges: Sequence[KeyRange]


Access = ByKey | ByRange | None
"""None reads all rows."""


def access_to(predicate: Bound | None, source: DataSource, key: Sequence[Column]) -> Access:
    """Return the shortest way to the rows that a condition allows.

    ``key`` are the table's key columns by their names in the condition.
    """
    keys = key_lookups(predicate, key)
    if keys is not None:
        return ByKey(keys, windows_of(predicate) if source.window is not None else Windows())
    ranges = _ranges(predicate, key) if _in_order_of_bytes(source) else None
    return None if ranges is None else ByRange(ranges)


def key_lookups(predicate: Bound | None, key: Sequence[Column]) -> list[tuple[Any, ...]] | None:
    """Return the keys that a condition allows if ``=`` or IN give every key column; else None."""
    if predicate is None or not key:
        return None
    key_values: dict[Any, tuple[Any, ...]] = {}
    for alternative in alternatives(predicate) or ([],):
        values = _key_values(alternative, key)
        if values is None:
            return None
        key_values |= _distinct(values)
    return list(key_values.values()) if len(key_values) <= _MOST_LOOKUPS else None


def alternatives(expr: Bound) -> list[list[Bound]] | None:
    """Return the condition as OR of ANDs; None if there would be very many alternatives."""
    match expr:
        case b.Logical(op, left, right):
            return combined(op, alternatives(left), alternatives(right))
        case _:
            return [[expr]]


def combined(
    op: str, left: list[list[T]] | None, right: list[list[T]] | None
) -> list[list[T]] | None:
    """Return two conditions under OR or AND as OR of ANDs; None if there would be very many."""
    if left is None or right is None:
        return None
    count = len(left) + len(right) if op == "OR" else len(left) * len(right)
    if count > MOST_ALTERNATIVES:
        return None
    return left + right if op == "OR" else [x + y for x in left for y in right]


def _key_values(
    alternative: Iterable[Bound], key: Sequence[Column]
) -> list[tuple[Any, ...]] | None:
    choices: dict[str, list[Any]] = {}
    types = {column.name: column.type for column in key}
    for part in alternative:
        match part:
            case b.Compare("=", b.Column(name), b.Const(value)) | b.Compare(
                "=", b.Const(value), b.Column(name)
            ):
                choices.setdefault(name, _equal_keys(value, types.get(name)))
            case b.In(b.Column(name), options) if all(isinstance(o, b.Const) for o in options):
                consts = (o.value for o in options if isinstance(o, b.Const))
                values = (v for c in consts for v in _equal_keys(c, types.get(name)))
                choices.setdefault(name, list(_distinct(values).values()))
            case _:
                continue
    if any(column.name not in choices for column in key):
        return None
    product = itertools.product(*(choices[column.name] for column in key))
    return list(itertools.islice(product, _MOST_LOOKUPS + 1))


def _equal_keys(value: Any, type_: SqlType | None) -> list[Any]:
    """Return the keys that equal a constant, as their type has them: 1.50 for 1.5, 1 for 1.0.

    Two doubles equal zero; their bytes differ.
    """
    try:
        match type_:
            case model.Decimal() if value is not None:
                number = decimals.exact_double(value) if isinstance(value, float) else value
                return [decimals.fitter(type_, exact=True)(Decimal(number))]
            case model.INTEGER | model.BIGINT if isinstance(value, Decimal):
                return [int(value)] if value == value.to_integral_value() else []
            case model.DOUBLE if value == 0:
                return [0.0, -0.0]
            case _:
                return [value]
    except ArithmeticError:  # it has more digits than such a key
        return []


def _distinct(values: Iterable[T]) -> dict[Any, T]:
    """Return the values, each once, by what tells them apart."""
    return {_mark(value): value for value in values}


def _mark(value: Any) -> Any:
    """Return what is equal for the same keys only: the zeros of DOUBLE are equal, but two keys."""
    match value:
        case tuple():
            return tuple(map(_mark, value))
        case float() if value == 0:
            return value, math.copysign(1.0, value)
        case _:
            return value


# --- ranges


def _in_order_of_bytes(source: DataSource) -> bool:
    """Return whether the keys' bytes are in the order of their values."""
    key = source.schema.key
    plain = capabilities(source.key_format.name).plain_texts
    return plain and len(key) == 1 and key[0].type in (STRING, BYTES)


_EVERYTHING = ((None, None), (b"", None))


def _ranges(predicate: Bound | None, key: Sequence[Column]) -> list[KeyRange] | None:
    parts = None if predicate is None else alternatives(predicate)
    if parts is None:
        return None
    ranges = [_range(alternative, key[0].name) for alternative in parts]
    if any(range_ in _EVERYTHING for range_ in ranges):
        return None
    return _united(
        [range_ for range_ in ranges if range_[1] is None or (range_[0] or b"") < range_[1]]
    )


def _range(alternative: Iterable[Bound], name: str) -> KeyRange:
    lo: bytes | None = None
    hi: bytes | None = None
    for op, value in _limits(alternative, name):
        data = value.encode() if isinstance(value, str) else value
        if op in {">", ">=", "=", "begins"}:
            lo = data if lo is None else max(lo, data)
        if op in {"<", "<=", "=", "begins"}:
            end = after(data)
            hi = end if hi is None or (end is not None and end < hi) else hi
    return lo, hi


def _united(ranges: list[KeyRange]) -> list[KeyRange]:
    """Return the same keys in ranges that do not overlap."""
    out: list[KeyRange] = []
    for lo, hi in sorted(ranges, key=lambda range_: range_[0] or b""):
        if out and (out[-1][1] is None or (lo or b"") <= out[-1][1]):
            last = out[-1][1]
            out[-1] = out[-1][0], None if last is None or hi is None else max(last, hi)
        else:
            out.append((lo, hi))
    return out


def _limits(alternative: Iterable[Bound], name: str) -> Iterator[tuple[str, Any]]:
    """Return the comparisons of a column with constants, column first, and how it begins."""
    for part in alternative:
        match part:
            case b.Compare(_, b.Const(None), _) | b.Compare(_, _, b.Const(None)):
                continue  # as good as false
            case b.Compare(op, b.Column(column), b.Const(value)) if column == name:
                yield op, value
            case b.Compare(op, b.Const(value), b.Column(column)) if column == name:
                yield _MIRRORED.get(op, op), value
            case b.Like(b.Column(column), b.Const(str(pattern)), None) if column == name:
                yield "begins", _NO_TEXT.split(pattern)[0]
            case _:
                continue


# --- windows


def windows_of(predicate: Bound | None) -> Windows:
    """Return which windows a condition allows at most."""
    parts = (None if predicate is None else alternatives(predicate)) or [[]]
    windows = [_allowed(alternative) for alternative in parts]
    whole = windows[0]
    for window in windows[1:]:
        whole |= window
    return whole


def _allowed(alternative: list[Bound]) -> Windows:
    starts, ends = (_span(alternative, name) for name in (WINDOWSTART, WINDOWEND))
    return Windows(*starts, *ends)


def _span(alternative: list[Bound], name: str) -> tuple[int, int]:
    """Return the first and last time (ms) that the comparisons of a window's bound allow."""
    first, last = 0, _LATEST
    for op, value in _limits(alternative, name):
        if not isinstance(value, int):
            continue
        if op in {">", ">=", "="}:
            first = max(first, value + (op == ">"))
        if op in {"<", "<=", "="}:
            last = min(last, value - (op == "<"))
    return first, last
