"""COUNT, SUM and SUM_LIST: their state is one number per group."""

from __future__ import annotations

from decimal import Decimal as Dec
from typing import TYPE_CHECKING, Any

from ksql.core import NUMERIC_OVERFLOW
from ksql.core.types import WRAP32, WRAP64, Decimal, SqlType, wrap32, wrap64
from ksql.functions.build import SAME, Entry
from ksql.functions.spec import AggregateFactory, AggregateFunction
from ksql.java import WIDE, fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _count(params: tuple[str, ...]) -> AggregateFunction:
    return AggregateFunction(
        params,
        "BIGINT",
        init=int,
        step=lambda state, *_: state + 1,
        undo=lambda state, *_: state - 1,
        merge=lambda first, second: first + second,
        step_code="{s} + 1",
        merge_code="{s} + {o}",
        unordered=True,
    )


def integer_sum(kind: str, wrap: Callable[[int], int], code: str) -> AggregateFunction:
    """Return the wrapping sum of INT or BIGINT."""
    return AggregateFunction(
        (f"{kind} val",),
        kind,
        init=int,
        step=lambda state, value: wrap(state + value),
        undo=lambda state, value: wrap(state - value),
        merge=lambda first, second: wrap(first + second),
        step_code=code.format("{s} + {0}"),
        merge_code=code.format("{s} + {o}"),
        unordered=True,
    )


_DOUBLE_SUM = AggregateFunction(
    ("DOUBLE val",),
    "DOUBLE",
    init=float,
    step=lambda state, value: state + value,
    undo=lambda state, value: state - value,
    merge=lambda first, second: first + second,
    step_code="{s} + {0}",
    merge_code="{s} + {o}",
)


def _decimal_sum(
    types: tuple[SqlType, ...], _literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    kind = types[0] if isinstance(types[0], Decimal) else Decimal(1, 0)
    zero = Dec((0, (0,), -kind.scale))

    def checked(value: Dec) -> Dec:
        if not fits(value, kind.precision, kind.scale):
            raise NUMERIC_OVERFLOW()
        return value

    return AggregateFunction(
        ("DECIMAL val",),
        SAME,
        init=lambda: zero,
        step=lambda state, value: checked(WIDE.add(state, value)),
        undo=lambda state, value: checked(WIDE.subtract(state, value)),
        merge=lambda first, second: checked(WIDE.add(first, second)),
        raises=True,
    )


def _list_sum(kind: str, start: Callable[[], Any], wrap: Callable[[Any], Any]) -> AggregateFunction:
    def total(values: Iterable[Any]) -> Any:
        return sum((value for value in values if value is not None), start())

    return AggregateFunction(
        (f"ARRAY<{kind}> val",),
        kind,
        init=start,
        step=lambda state, values: wrap(state + total(values)),
        undo=lambda state, values: wrap(state - total(values)),
        merge=lambda first, second: wrap(first + second),
    )


ROWS: dict[str, Entry] = {
    "COUNT": (
        "The number of rows, or of those in which the argument is not NULL.",
        _count(()),
        _count(("ANY val",)),
    ),
    "SUM": (
        "The sum of the values.",
        integer_sum("INT", wrap32, WRAP32),
        integer_sum("BIGINT", wrap64, WRAP64),
        _DOUBLE_SUM,
        AggregateFactory(("DECIMAL val",), (), SAME, _decimal_sum, undoable=True),
    ),
    "SUM_LIST": (
        "The sum of all elements of the arrays.",
        _list_sum("INT", int, wrap32),
        _list_sum("BIGINT", int, wrap64),
        _list_sum("DOUBLE", float, lambda value: value),
    ),
}
