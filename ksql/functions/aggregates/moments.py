"""AVG, the deviations and CORRELATION: a few sums per group, put together at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ksql.core.types import WRAP32, WRAP64, wrap32, wrap64
from ksql.functions.spec import AggregateFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.functions.build import Entry

Sums = list[Any]


def _plain(value: Any) -> Any:
    return value


_WRAPS: dict[str, Callable[[Any], Any]] = {"INT": wrap32, "BIGINT": wrap64, "DOUBLE": _plain}
_WRAP_CODE = {"INT": WRAP32, "BIGINT": WRAP64, "DOUBLE": "{}"}


def _average(kind: str) -> AggregateFunction:
    """Return an aggregate whose state is [sum in the type of the input, count]."""
    wrap, code = _WRAPS[kind], _WRAP_CODE[kind]
    return AggregateFunction(
        (f"{kind} val",),
        "DOUBLE",
        init=(lambda: [0.0, 0]) if kind == "DOUBLE" else (lambda: [0, 0]),
        step=lambda state, value: [wrap(state[0] + value), state[1] + 1],
        result=lambda state: state[0] / state[1] if state[1] else 0.0,
        undo=lambda state, value: [wrap(state[0] - value), state[1] - 1],
        merge=lambda first, second: [wrap(first[0] + second[0]), first[1] + second[1]],
        step_code=f"[{code.format('{s}[0] + {0}')}, {{s}}[1] + 1]",
        merge_code=f"[{code.format('{s}[0] + {o}[0]')}, {{s}}[1] + {{o}}[1]]",
        state=f"STRUCT<SUM {kind}, COUNT BIGINT>",
        unordered=kind != "DOUBLE",
    )


def _decimal_average() -> AggregateFunction:
    as_double = _average("DOUBLE")
    return AggregateFunction(
        ("DECIMAL val",),
        "DOUBLE",
        init=as_double.init,
        step=lambda state, value: as_double.step(state, float(value)),
        result=as_double.result,
        undo=lambda state, value: [state[0] - float(value), state[1] - 1],
        merge=as_double.merge,
        state=as_double.state,
    )


def _share(total: Any, count: int, value: Any) -> float:
    """Return a value's share in the squared deviations; sum and count include it already."""
    if count < 2:
        return 0.0
    delta = count * value - total
    share: float = float(delta) * delta / (count * (count - 1))
    return share


def _spread_step(state: Sums, value: Any) -> Sums:
    """Return [sum, count, squared deviations] with one more value (Youngs and Cramer)."""
    total, count = state[0] + value, state[1] + 1
    return [total, count, state[2] + _share(total, count, value)]


def _spread_undo(state: Sums, value: Any) -> Sums:
    total, count, squares = state
    left = squares - _share(total, count, value) if count > 2 else 0.0
    return [total - value, count - 1, _not_negative(left)]


def _not_negative(squares: float) -> float:
    """Return a sum of squares without the rounding that undo leaves below zero; NaN stays NaN."""
    return 0.0 if squares < 0 else squares


def _spread_merge(first: Sums, second: Sums) -> Sums:
    if not first[1] or not second[1]:
        return first if first[1] else second
    count = first[1] + second[1]
    delta = first[0] / first[1] - second[0] / second[1]
    squares = first[2] + second[2] + delta * delta * first[1] * second[1] / count
    return [first[0] + second[0], count, squares]


def _variance(state: Sums) -> float:
    # a stored state of an earlier release may be below zero
    return float(_not_negative(state[2]) / (state[1] - 1)) if state[1] > 1 else 0.0


def _spread(kind: str, result: Callable[[Sums], float]) -> AggregateFunction:
    return AggregateFunction(
        (f"{kind} val",),
        "DOUBLE",
        init=(lambda: [0.0, 0, 0.0]) if kind == "DOUBLE" else (lambda: [0, 0, 0.0]),
        step=_spread_step,
        result=result,
        undo=_spread_undo,
        merge=_spread_merge,
        state=f"STRUCT<SUM {kind}, COUNT BIGINT, M2 DOUBLE>",
    )


def _pair_sums(state: Sums, x: Any, y: Any, sign: int) -> Sums:
    """Return [count, Σx, Σy, Σx², Σy², Σxy]."""
    terms = (1, x, y, x * x, y * y, x * y)
    return [total + sign * term for total, term in zip(state, terms, strict=True)]


def _correlation(state: Sums) -> float:
    """Return Pearson's coefficient; NaN as long as one side does not vary."""
    count, sum_x, sum_y, square_x, square_y, product = map(float, state)
    spread_x, spread_y = count * square_x - sum_x * sum_x, count * square_y - sum_y * sum_y
    # rounding makes one without spread negative: the product of two such ones is positive
    if spread_x <= 0 or spread_y <= 0 or (spread := spread_x * spread_y) <= 0:
        return math.nan
    return (count * product - sum_x * sum_y) / math.sqrt(spread)


def _pearson(kind: str) -> AggregateFunction:
    zero = 0.0 if kind == "DOUBLE" else 0
    return AggregateFunction(
        (f"{kind} x", f"{kind} y"),
        "DOUBLE",
        init=lambda: [0, zero, zero, zero, zero, zero],
        step=lambda state, x, y: _pair_sums(state, x, y, 1),
        result=_correlation,
        undo=lambda state, x, y: _pair_sums(state, x, y, -1),
        merge=lambda first, second: [a + b for a, b in zip(first, second, strict=True)],
        state=f"STRUCT<COUNT BIGINT, X {kind}, Y {kind}, XX {kind}, YY {kind}, XY {kind}>",
        unordered=kind != "DOUBLE",
    )


ROWS: dict[str, Entry] = {
    "AVG": (
        "The average of the values; 0 if there is none.",
        *(_average(kind) for kind in _WRAPS),
        _decimal_average(),
    ),
    "STDDEV_SAMP": (
        "The sample variance of the values (kept for old queries: STDDEV_SAMPLE takes the root).",
        *(_spread(kind, _variance) for kind in _WRAPS),
    ),
    "STDDEV_SAMPLE": (
        "The sample standard deviation of the values; 0 if there are fewer than two.",
        *(_spread(kind, lambda state: math.sqrt(_variance(state))) for kind in _WRAPS),
    ),
    "CORRELATION": (
        "Pearson's correlation of two columns.",
        *(_pearson(kind) for kind in _WRAPS),
    ),
}
