"""Arrays: sets, search, order, parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.core.types import model, render, stringer
from ksql.functions.build import family
from ksql.functions.errors import ResultBudget
from ksql.functions.spec import Scalar
from ksql.java import (
    LONGEST_RESULT,
    EvaluationError,
    ResultTooLong,
    identity,
    is_plain,
    membership,
    order,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ksql.core.types import SqlType

List = list[Any]

_ASCENDING = {"ASC": False, "ASCENDING": False, "DESC": True, "DESCENDING": True}
_ENTRY_VALUES = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")
_JOINABLE = (model.BOOLEAN, model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING, model.NULL)


class BadSeries(EvaluationError):
    """A step that never reaches the end."""

    def __init__(self, step: int) -> None:
        super().__init__(f"GENERATE_SERIES cannot reach the end with the step {step}")


class BadSlice(EvaluationError):
    """A slice that ends before it starts."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"SLICE cannot end at {last} when it starts at {first}")


class NotJoinable(EvaluationError):
    """Elements that ARRAY_JOIN does not print."""

    def __init__(self, type_: SqlType) -> None:
        super().__init__(f"ARRAY_JOIN does not work on elements of the type {type_}")


def _item(type_: SqlType) -> SqlType:
    return type_.item if isinstance(type_, model.Array) else model.NULL


def _distinct_by(types: tuple[SqlType, ...]) -> Callable[[Iterable[Any]], List]:
    """Return a function that keeps the first of equal elements."""
    item = _item(types[0])
    if is_plain(item):
        return lambda values: list(dict.fromkeys(values))
    of = identity(item)

    def distinct(values: Iterable[Any]) -> List:
        first: dict[Any, Any] = {}
        for value in values:
            first.setdefault(of(value), value)
        return list(first.values())

    return distinct


def _except(types: tuple[SqlType, ...]) -> Callable[[List, List], List]:
    distinct, of = _distinct_by(types), identity(_item(types[0]))

    def run(left: List, right: List) -> List:
        unwanted = set(map(of, right))
        return distinct(value for value in left if of(value) not in unwanted)

    return run


def _intersect(types: tuple[SqlType, ...]) -> Callable[[List, List], List]:
    distinct, of = _distinct_by(types), identity(_item(types[0]))

    def run(left: List, right: List) -> List:
        keys = set(map(of, right))
        return distinct(value for value in left if of(value) in keys)

    return run


def _union(types: tuple[SqlType, ...]) -> Callable[[List, List], List]:
    distinct = _distinct_by(types)
    return lambda left, right: distinct([*left, *right])


def concat(left: List | None, right: List | None) -> List | None:
    """Return both arrays one after the other; a NULL one adds nothing."""
    if left is None and right is None:
        return None
    return [*(left or ()), *(right or ())]


def _contains(types: tuple[SqlType, ...]) -> Callable[[List | None, Any], bool]:
    holds = membership(_item(types[0]))
    return lambda values, element: values is not None and holds(values, element)


def _remove(types: tuple[SqlType, ...]) -> Callable[[List | None, Any], List | None]:
    of = identity(_item(types[0]))

    def run(values: List | None, unwanted: Any) -> List | None:
        if values is None:
            return None
        gone = of(unwanted)
        return [value for value in values if of(value) != gone]

    return run


def _extreme(choose: Callable[..., Any]) -> Callable[[tuple[SqlType, ...]], Callable[[List], Any]]:
    def typed(types: tuple[SqlType, ...]) -> Callable[[List], Any]:
        by = order(_item(types[0]))
        return lambda values: choose((v for v in values if v is not None), key=by, default=None)

    return typed


def _sort(types: tuple[SqlType, ...]) -> Callable[..., List | None]:
    """Return a function that sorts, NULLs last in both directions."""
    by = order(_item(types[0]))

    def run(values: List, direction: str = "ASC") -> List | None:
        backwards = _ASCENDING.get(direction.upper())
        if backwards is None:
            return None
        present = [value for value in values if value is not None]
        present.sort(key=by, reverse=backwards)
        return present + [None] * (len(values) - len(present))

    return run


def _only_null(type_: SqlType) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if value is not None:
            raise NotJoinable(type_)
        return "null"

    return text


def _join(types: tuple[SqlType, ...]) -> Callable[..., str | None]:
    item = _item(types[0])
    joinable = item in _JOINABLE or isinstance(item, model.Decimal)
    text = stringer(item) if joinable else _only_null(item)

    def run(values: List | None, delimiter: str | None = ",") -> str | None:
        if values is None:
            return None
        room, parts = ResultBudget("ARRAY_JOIN"), []
        for part in map(text, values):
            room.take(part)
            parts.append(part)
        between = delimiter or ""
        if len(parts) * len(between) > LONGEST_RESULT:
            raise ResultTooLong("ARRAY_JOIN", len(parts) * len(between))
        return between.join(parts)

    return run


def cut(values: List | None, first: int | None, last: int | None) -> List | None:
    """Return the elements from one position to another, both counted from 1 and included."""
    if values is None:
        return None
    start = 0 if first is None else first - 1
    end = len(values) if last is None else last
    if start < 0 or end > len(values):
        return None
    if start > end:
        raise BadSlice(start + 1, end)
    return values[start:end]


def series(start: int, end: int, step: int | None = None) -> list[int]:
    """Return the numbers from one to the other, both included."""
    by = (1 if end > start else -1) if step is None else step
    if by == 0 or (end - start) * by < 0:
        raise BadSeries(by)
    numbers = range(start, end + (1 if by > 0 else -1), by)
    if (end - start) // by >= LONGEST_RESULT:
        raise ResultTooLong("GENERATE_SERIES", (end - start) // by + 1)
    return list(numbers)


def entries(values: dict[str, Any] | None, ordered: bool) -> list[dict[str, Any]] | None:
    """Return the map's entries as structs of K and V, by key if so wished."""
    if values is None:
        return None
    pairs = sorted(values.items()) if ordered else render.entries(values)
    return [{"K": key, "V": value} for key, value in pairs]


_TWO = ("ARRAY<T> left", "ARRAY<T> right")

ARRAYS = family(
    "ARRAY",
    {
        "array_concat": (
            "Both arrays in one, the second behind the first.",
            Scalar(_TWO, "ARRAY<T>", concat, nulls="pass"),
        ),
        "array_contains": (
            "Whether the array has an element.",
            Scalar(("ARRAY<T> array", "T val"), "BOOLEAN", typed=_contains, nulls="pass"),
        ),
        "array_distinct": (
            "The different elements, in the order of their first occurrence.",
            Scalar(("ARRAY<T> array",), "ARRAY<T>", typed=_distinct_by),
        ),
        "array_except": (
            "The different elements of the first array that the second does not have.",
            Scalar(_TWO, "ARRAY<T>", typed=_except),
        ),
        "array_intersect": (
            "The different elements that both arrays have.",
            Scalar(_TWO, "ARRAY<T>", typed=_intersect),
        ),
        "array_union": (
            "The different elements of both arrays.",
            Scalar(_TWO, "ARRAY<T>", typed=_union),
        ),
        "array_join": (
            "The elements as one text with a delimiter between them.",
            Scalar(("ARRAY<T> array",), "STRING", typed=_join, nulls="pass"),
            Scalar(("ARRAY<T> array", "STRING delimiter"), "STRING", typed=_join, nulls="pass"),
        ),
        "array_length": (
            "The number of elements.",
            Scalar(("ARRAY<T> array",), "INT", len, "len({0})"),
        ),
        "array_max": (
            "The largest element; NULLs do not count.",
            Scalar(("ARRAY<T> array",), "T", typed=_extreme(max)),
        ),
        "array_min": (
            "The smallest element; NULLs do not count.",
            Scalar(("ARRAY<T> array",), "T", typed=_extreme(min)),
        ),
        "array_remove": (
            "The array without the elements equal to a value.",
            Scalar(("ARRAY<T> array", "T element"), "ARRAY<T>", typed=_remove, nulls="pass"),
        ),
        "array_sort": (
            "The elements in order, NULLs last; DESC turns the order round.",
            Scalar(("ARRAY<T> array",), "ARRAY<T>", typed=_sort),
            Scalar(("ARRAY<T> array", "STRING direction"), "ARRAY<T>", typed=_sort),
        ),
        "slice": (
            "The elements from one position to another, both included, counted from 1.",
            Scalar(("ARRAY<T> in", "INT from", "INT to"), "ARRAY<T>", cut, nulls="pass"),
        ),
        "generate_series": (
            "An array of the numbers from one to another.",
            Scalar(("INT start", "INT end"), "ARRAY<INT>", series),
            Scalar(("BIGINT start", "BIGINT end"), "ARRAY<BIGINT>", series),
            Scalar(("INT start", "INT end", "INT step"), "ARRAY<INT>", series),
            Scalar(("BIGINT start", "BIGINT end", "INT step"), "ARRAY<BIGINT>", series),
        ),
        "entries": (
            "The entries of a map as structs of key and value.",
            *(
                Scalar(
                    (f"MAP<STRING, {kind}> map", "boolean sorted"),
                    f"ARRAY<STRUCT<K STRING, V {kind}>>",
                    entries,
                    nulls="pass",
                )
                for kind in _ENTRY_VALUES
            ),
        ),
    },
)
