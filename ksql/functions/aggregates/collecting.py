"""COLLECT_LIST, COLLECT_SET, HISTOGRAM, TOPK: many values per group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.core.types import Array, Field, SqlType, Struct
from ksql.functions.build import Entry, Rule
from ksql.functions.errors import BadConstant
from ksql.functions.spec import AggregateFactory, AggregateFunction
from ksql.java import EvaluationError, identity, membership, order

if TYPE_CHECKING:
    from collections.abc import Callable


HISTOGRAM_KEYS = 1000
_SORTED = ("INT", "BIGINT", "DOUBLE", "STRING")
_DISTINCT = (*_SORTED, "DATE", "TIME", "TIMESTAMP", "BYTES", "DECIMAL")


class NothingToUndo(EvaluationError):
    """A histogram should count down a value that it has not counted."""

    def __init__(self, value: object) -> None:
        super().__init__(f"the histogram has no entry for {value!r}")


class NoCount(BadConstant):
    """The number of values to keep is NULL."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} needs the number of values to keep: NULL is no number")


class BadLimit(BadConstant):
    """The configured cap is no number."""

    def __init__(self, name: str, limit: str) -> None:
        super().__init__(f"ksql.functions.{name.lower()}.limit must be an integer, not '{limit}'")


def _limit(name: str, settings: dict[str, str]) -> int | None:
    """Return the cap that the configuration sets; None if there is none."""
    text = str(settings.get("limit", -1))
    try:
        limit = int(text)
    except ValueError as error:
        raise BadLimit(name, text) from error
    return None if limit < 0 else limit


def _list(
    types: tuple[SqlType, ...], _literals: tuple[Any, ...], settings: dict[str, str]
) -> AggregateFunction:
    limit = _limit("COLLECT_LIST", settings)
    of = identity(types[0])

    def step(state: list[Any], value: Any) -> list[Any]:
        if limit is None or len(state) < limit:
            state.append(value)
        return state

    def undo(state: list[Any], value: Any) -> list[Any]:
        key = of(value)
        for index in range(len(state) - 1, -1, -1):
            if of(state[index]) == key:
                del state[index]
                break
        return state

    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=step,
        result=list,
        undo=undo,
        merge=lambda first, second: [*first, *second][:limit],
        skips_null=False,
        in_place=("step", "undo"),
        sure=True,
    )


def _set(
    types: tuple[SqlType, ...], _literals: tuple[Any, ...], settings: dict[str, str]
) -> AggregateFunction:
    limit = _limit("COLLECT_SET", settings)
    of = identity(types[0])
    holds = membership(types[0])

    def step(state: list[Any], value: Any) -> list[Any]:
        if (limit is None or len(state) < limit) and not holds(state, value):
            state.append(value)
        return state

    def merge(first: list[Any], second: list[Any]) -> list[Any]:
        known = {of(value) for value in first}
        return [*first, *(value for value in second if of(value) not in known)][:limit]

    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=step,
        result=list,
        merge=merge,
        skips_null=False,
        in_place=("step",),
        sure=True,
    )


def _histogram_step(state: dict[str, int], value: str) -> dict[str, int]:
    if value in state or len(state) < HISTOGRAM_KEYS:
        state[value] = state.get(value, 0) + 1
    return state


def _histogram_undo(state: dict[str, int], value: str) -> dict[str, int]:
    if value not in state:
        raise NothingToUndo(value)
    left = {**state, value: state[value] - 1}
    if not left[value]:
        del left[value]
    return left


def _histogram_merge(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    merged = dict(first)
    for value, count in second.items():
        if value in merged or len(merged) < HISTOGRAM_KEYS:
            merged[value] = merged.get(value, 0) + count
    return merged


def _insert(state: list[Any], entry: Any, count: int, by: Callable[[Any], Any]) -> list[Any]:
    """Return the list, sorted downwards, with one more entry, after those that are as large."""
    rank = by(entry)
    index = next((i for i, kept in enumerate(state) if by(kept) < rank), len(state))
    return [*state[:index], entry, *state[index:]][:count]


def _top(by: Callable[[Any], Any], count: int) -> Callable[[list[Any], list[Any]], list[Any]]:
    def merge(first: list[Any], second: list[Any]) -> list[Any]:
        return sorted([*first, *second], key=by, reverse=True)[:count]

    return merge


def _count(name: str, literals: tuple[Any, ...]) -> int:
    count: int | None = literals[0]
    if count is None:
        raise NoCount(name)
    return count


def _top_values(
    types: tuple[SqlType, ...], literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    by = order(types[0])
    count = _count("TOPK", literals)
    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=lambda state, value: _insert(state, value, count, by),
        merge=_top(by, count),
    )


def _top_distinct(
    types: tuple[SqlType, ...], literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    by = order(types[0])
    count = _count("TOPKDISTINCT", literals)
    top = _top(by, count)

    def merge(first: list[Any], second: list[Any]) -> list[Any]:
        return top(first, [value for value in second if value not in first])

    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=lambda state, value: state if value in state else _insert(state, value, count, by),
        merge=merge,
    )


def _row_type(types: tuple[SqlType, ...]) -> SqlType:
    first, *others = types[:-1]
    fields = [Field("sort_col", first)]
    fields += [Field(f"col{i}", type_) for i, type_ in enumerate(others)]
    return Array(Struct(tuple(fields)))


def _top_rows(
    types: tuple[SqlType, ...], literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    by_value = order(types[0])
    names = ["sort_col", *(f"col{i}" for i in range(len(types) - 1))]
    count = _count("TOPK", literals)

    def by(row: dict[str, Any]) -> Any:
        return by_value(row["sort_col"])

    def step(state: list[Any], *values: Any) -> list[Any]:
        if values[0] is None:
            return state
        return _insert(state, dict(zip(names, values, strict=True)), count, by)

    return AggregateFunction(
        ("T val", "ANY... others"),
        ROWS_OF_TOP,
        init=list,
        step=step,
        merge=_top(by, count),
        skips_null=False,
    )


ROWS_OF_TOP = Rule("ARRAY<STRUCT<`sort_col` T, `col0` ANY, ...>>", _row_type)

ROWS: dict[str, Entry] = {
    "COLLECT_LIST": (
        "All values in an array, NULLs included.",
        AggregateFactory(("T val",), (), "ARRAY<T>", _list, undoable=True),
    ),
    "COLLECT_SET": (
        "The different values in an array, NULL included.",
        AggregateFactory(("T val",), (), "ARRAY<T>", _set),
    ),
    "HISTOGRAM": (
        "How often each text occurs, for the first thousand texts.",
        AggregateFunction(
            ("STRING val",),
            "MAP<STRING, BIGINT>",
            init=dict,
            step=_histogram_step,
            result=dict,
            undo=_histogram_undo,
            merge=_histogram_merge,
            in_place=("step",),
            sure=True,
        ),
    ),
    "TOPK": (
        "The k largest values, largest first; with more columns, the rows that have them.",
        *(AggregateFactory((f"{k} val",), ("INT k",), f"ARRAY<{k}>", _top_values) for k in _SORTED),
        *(
            AggregateFactory(
                (f"{k} val", "ANY other", "ANY... others"), ("INT k",), ROWS_OF_TOP, _top_rows
            )
            for k in _SORTED
        ),
    ),
    "TOPKDISTINCT": (
        "The k largest different values, largest first.",
        *(
            AggregateFactory(
                (f"{k} val",),
                ("INT k",),
                Rule("ARRAY<DECIMAL>", lambda types: Array(types[0]))
                if k == "DECIMAL"
                else f"ARRAY<{k}>",
                _top_distinct,
            )
            for k in _DISTINCT
        ),
    ),
}
