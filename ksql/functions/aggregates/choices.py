"""MIN, MAX, the first and the last value, ATTR: one value, or a few, chosen from a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.functions.build import SAME, Entry
from ksql.functions.errors import BadConstant
from ksql.functions.spec import AggregateFactory, AggregateFunction
from ksql.java import identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core.types import SqlType

_ONE = "STRUCT<SEQ BIGINT, VAL T>"
_MANY = f"ARRAY<{_ONE}>"
#: Types with values that are equal and not the same: 0.0 and -0.0, 1.5 and 1.50.
_ALIKE = ("DOUBLE", "DECIMAL")
_ORDERED = ("INT", "BIGINT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "STRING", "BYTES", "DECIMAL")


class TooFew(BadConstant):
    """A number of values to keep that keeps none."""

    def __init__(self, name: str) -> None:
        n = f"{name.partition('_')[0].lower()}N"
        super().__init__(f"{n} must be 1 or greater in {name}")


def _lower(old: Any, new: Any) -> Any:
    return new if old is None or new < old or old != old else old


def _higher(old: Any, new: Any) -> Any:
    return new if old is None or new > old or new != new else old


def _extreme(kind: str, sign: str) -> AggregateFunction:
    """Make MIN or MAX by the comparison of that sign; among doubles NaN is the largest."""
    better = f"{{new}} {sign} {{old}}"
    if kind == "DOUBLE":
        better += " or {old} != {old}" if sign == "<" else " or {new} != {new}"
    template = f"({{new}} if {{old}} is None or {better} else {{old}})"
    merge = template.replace("{new}", "{o}").replace("{old}", "{s}")
    choose = _lower if sign == "<" else _higher
    return AggregateFunction(
        (f"{kind} val",),
        SAME if kind == "DECIMAL" else kind,
        init=_nothing,
        step=choose,
        merge=lambda first, second: first if second is None else choose(first, second),
        step_code=template.replace("{new}", "{0}").replace("{old}", "{s}"),
        merge_code=f"({{s}} if {{o}} is None else {merge})",
        unordered=kind not in _ALIKE,
    )


def _nothing() -> None:
    return None


def _first(ignore_nulls: bool) -> AggregateFunction:
    """Return an aggregate whose state is a list of no or one value."""
    return AggregateFunction(
        ("T val",),
        "T",
        init=list,
        step=lambda state, value: state or [value],
        result=lambda state: state[0] if state else None,
        merge=lambda first, second: first or second,
        skips_null=ignore_nulls,
        step_code="({s} or [{0}])",
        merge_code="({s} or {o})",
        state=_ONE,
    )


def _last(ignore_nulls: bool) -> AggregateFunction:
    return AggregateFunction(
        ("T val",),
        "T",
        init=list,
        step=lambda _, value: [value],
        result=lambda state: state[0] if state else None,
        merge=lambda first, second: second or first,
        skips_null=ignore_nulls,
        step_code="[{0}]",
        merge_code="({o} or {s})",
        state=_ONE,
    )


def _first_n(count: int, ignore_nulls: bool) -> AggregateFunction:
    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=lambda state, value: state if len(state) >= count else [*state, value],
        merge=lambda first, second: [*first, *second][:count],
        skips_null=ignore_nulls,
    )


def _last_n(count: int, ignore_nulls: bool) -> AggregateFunction:
    return AggregateFunction(
        ("T val",),
        "ARRAY<T>",
        init=list,
        step=lambda state, value: [*state, value][-count:],
        merge=lambda first, second: [*first, *second][-count:],
        skips_null=ignore_nulls,
    )


def _by_offset(
    name: str,
    one: Callable[[bool], AggregateFunction],
    many: Callable[[int, bool], AggregateFunction],
) -> tuple[AggregateFunction | AggregateFactory, ...]:
    def make_one(
        _types: tuple[SqlType, ...], literals: tuple[Any, ...], _: object
    ) -> AggregateFunction:
        return one(literals[0])

    def make_many(
        _types: tuple[SqlType, ...], literals: tuple[Any, ...], _: object
    ) -> AggregateFunction:
        count, ignore_nulls = (*literals, True)[:2]
        if count is None or count < 1:
            raise TooFew(name)
        return many(count, ignore_nulls)

    return (
        one(True),
        AggregateFactory(("T val",), ("BOOLEAN ignoreNulls",), "T", make_one, state=_ONE),
        AggregateFactory(("T val",), ("INT n",), "ARRAY<T>", make_many, state=_MANY),
        AggregateFactory(
            ("T val",), ("INT n", "BOOLEAN ignoreNulls"), "ARRAY<T>", make_many, state=_MANY
        ),
    )


def _attr(
    types: tuple[SqlType, ...], _literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    """Return an aggregate whose state is a list of [value, how often], first seen first."""
    of = identity(types[0])

    def change(state: list[list[Any]], value: Any, by: int) -> list[list[Any]]:
        key = of(value)
        for index, (kept, count) in enumerate(state):
            if of(kept) == key:
                changed = [[kept, count + by]] if count + by > 0 else []
                return [*state[:index], *changed, *state[index + 1 :]]
        return [*state, [value, by]] if by > 0 else state

    def merge(first: list[list[Any]], second: list[list[Any]]) -> list[list[Any]]:
        for value, count in second:
            first = change(first, value, count)
        return first

    return AggregateFunction(
        ("T colVal",),
        "T",
        init=list,
        step=lambda state, value: change(state, value, 1),
        result=lambda state: state[0][0] if len(state) == 1 else None,
        undo=lambda state, value: change(state, value, -1),
        merge=merge,
        skips_null=False,
    )


ROWS: dict[str, Entry] = {
    "MIN": ("The smallest value.", *(_extreme(kind, "<") for kind in _ORDERED)),
    "MAX": ("The largest value.", *(_extreme(kind, ">") for kind in _ORDERED)),
    "EARLIEST_BY_OFFSET": (
        "The first value of a column, or its first n values.",
        *_by_offset("EARLIEST_BY_OFFSET", _first, _first_n),
    ),
    "LATEST_BY_OFFSET": (
        "The last value of a column, or its last n values, oldest first.",
        *_by_offset("LATEST_BY_OFFSET", _last, _last_n),
    ),
    "ATTR": (
        "The value of a column if all rows have the same, else NULL.",
        AggregateFactory(
            ("T colVal",),
            (),
            "T",
            _attr,
            undoable=True,
            state="ARRAY<STRUCT<VALUE T, COUNT INT>>",
        ),
    ),
}
