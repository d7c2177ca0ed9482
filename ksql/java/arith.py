"""Java's arithmetic where Python's differs: wrapping integers, IEEE doubles, long decimals."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from ksql.core.types import LONG_MAX, LONG_MIN, saturate
from ksql.java.values import EvaluationError

# Python's default context rounds to 28 digits; DECIMAL has no upper bound.
WIDE = decimal.Context(prec=10_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class NotANumber(EvaluationError):
    """A double without a decimal form was to become a decimal."""

    def __init__(self, value: float) -> None:
        super().__init__(f"{value} has no decimal form")


def round_half_up(value: float) -> int:
    """Round as Math.round: to the nearest integer, halves towards positive infinity."""
    if not math.isfinite(value):
        return saturate(value, LONG_MIN, LONG_MAX)
    floor = math.floor(value)
    return min(max(floor + (value - floor >= 0.5), LONG_MIN), LONG_MAX)


def decimal_of(value: float) -> Decimal:
    """Return the decimal that the double prints as.

    Raises: NotANumber for NaN and the infinities.
    """
    if not math.isfinite(value):
        raise NotANumber(value)
    return Decimal(repr(value))


def set_scale(value: Decimal, scale: int, rounding: str) -> Decimal:
    """Return the decimal with that many digits after the point (negative: zeros before it).

    There is no minus before a zero.
    """
    scaled = value.quantize(Decimal((0, (1,), -scale)), rounding=rounding, context=WIDE)
    return scaled if scaled else scaled.copy_abs()


def fits(value: Decimal, precision: int, scale: int) -> bool:
    """Return whether the whole digits are no more than the type has."""
    return value.is_zero() or value.adjusted() < precision - scale


def ieee(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return the function with NaN where Python raises, and Infinity where it overflows."""

    def run(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return run


def cbrt(value: float) -> float:
    """Return the double whose cube is nearest (Math.cbrt); the C library's may be its neighbour."""
    root = math.cbrt(value)
    if not math.isfinite(root) or root == 0:
        return root
    exact = Fraction(value)
    near = (math.nextafter(root, -math.inf), root, math.nextafter(root, math.inf))
    return min(near, key=lambda candidate: abs(Fraction(candidate) ** 3 - exact))
