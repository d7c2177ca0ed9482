"""Numbers: rounding, logarithms, angles, distances."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable
from decimal import Decimal as Dec
from typing import Any

from ksql.core import NO_WHOLE_DIGITS
from ksql.core.types import (
    LONG_MAX,
    LONG_MIN,
    NULL,
    WRAP32,
    WRAP64,
    Decimal,
    SqlType,
    divide_double,
    saturate,
    wrap32,
    wrap64,
)
from ksql.functions.build import SAME, Rule, family
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError, cbrt, decimal_of, ieee, round_half_up, set_scale

Number = int | float

EARTH_KM = 6371.0
EARTH_MILES = 3959.0
_KM = {"km", "kilometer", "kilometers", "kilometre", "kilometres"}
_MILES = {"mi", "mile", "miles"}


class BadPlace(EvaluationError):
    """A latitude or longitude that is not on Earth."""

    def __init__(self, what: str, value: float, limit: int) -> None:
        super().__init__(f"{what} must be between -{limit} and {limit}, not {value}")


class BadUnit(EvaluationError):
    """A unit of length that GEO_DISTANCE does not know."""

    def __init__(self, unit: str) -> None:
        super().__init__(f"the unit of a distance must be miles or kilometres, not {unit!r}")


def _whole(args: tuple[SqlType, ...]) -> SqlType:
    first = args[0]
    if not isinstance(first, Decimal):
        return NULL
    if first.precision == first.scale:
        raise NO_WHOLE_DIGITS()
    return Decimal(first.precision - first.scale, 0)


WHOLE = Rule("DECIMAL", _whole)


def _doubles(row: Callable[[Any], float]) -> tuple[Scalar, ...]:
    """Return one overload per integer type and one for DOUBLE, all giving DOUBLE."""
    return tuple(Scalar((f"{kind} value",), "DOUBLE", row) for kind in _KINDS)


def _pairs(
    row: Callable[[Any, Any], float], first: str, second: str, kinds: tuple[str, ...] = ()
) -> tuple[Scalar, ...]:
    return tuple(
        Scalar((f"{kind} {first}", f"{kind} {second}"), "DOUBLE", row) for kind in kinds or _KINDS
    )


_KINDS = ("INT", "BIGINT", "DOUBLE")


def ln(value: Number) -> float:
    """Return the natural logarithm: -Infinity of 0, NaN of what is negative."""
    return math.log(value) if value > 0 else (-math.inf if value == 0 else math.nan)


def log(base: Number, value: Number) -> float:
    """Return the logarithm to a base; NaN for a base that has none."""
    if base <= 0 or base == 1:
        return math.nan
    return divide_double(ln(value), ln(base))


def power(base: Number, exponent: Number) -> float:
    """Compute Math.pow."""
    base, exponent = float(base), float(exponent)
    if math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1):
        return math.nan
    try:
        return math.pow(base, exponent)
    except ValueError:
        return _signed_infinity(base, exponent) if base == 0 else math.nan
    except OverflowError:
        return _signed_infinity(base, exponent)


def _signed_infinity(base: float, exponent: float) -> float:
    odd = exponent.is_integer() and exponent % 2 == 1
    return math.copysign(math.inf, base) if odd else math.inf


def sinh(value: Number) -> float:
    """Compute Math.sinh."""
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def cot(value: Number) -> float:
    """Return the cotangent; Infinity of 0."""
    return divide_double(1.0, _TAN(value))


_TAN = ieee(math.tan)


def sign(value: Number) -> int:
    """Return -1, 0 or 1."""
    return (value > 0) - (value < 0)


def _round_to(value: float, places: int) -> float:
    return float(_halves_up(decimal_of(value), places)) + 0.0


def _halves_up(value: Dec, places: int) -> Dec:
    rounding = decimal.ROUND_HALF_DOWN if value < 0 else decimal.ROUND_HALF_UP
    return set_scale(value, places, rounding)


def _trunc_to(value: float, places: int) -> float:
    return float(set_scale(decimal_of(value), places, decimal.ROUND_DOWN)) + 0.0


def _cut(value: Dec, places: int) -> Dec:
    return set_scale(value, places, decimal.ROUND_DOWN)


def _keeping_scale(cut: Callable[[Dec, int], Dec]) -> Callable[[tuple[SqlType, ...]], Any]:
    """Return the two-argument form for DECIMAL: cut at the place, then pad to the type's scale."""

    def typed(types: tuple[SqlType, ...]) -> Callable[[Dec, int], Dec]:
        scale = types[0].scale if isinstance(types[0], Decimal) else 0
        return lambda value, places: set_scale(cut(value, places), scale, decimal.ROUND_HALF_UP)

    return typed


def _to_integral(rounding: str) -> Callable[[tuple[SqlType, ...]], Any]:
    def typed(types: tuple[SqlType, ...]) -> Callable[[Dec], Dec]:
        scale = types[0].scale if isinstance(types[0], Decimal) else 0
        return lambda value: set_scale(set_scale(value, 0, rounding), scale, rounding)

    return typed


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    def run(value: float) -> float:
        return math.copysign(float(function(value)), value) if math.isfinite(value) else value

    return run


def geo_distance(
    lat1: float, lon1: float, lat2: float, lon2: float, unit: str | None = None
) -> float:
    """Return the length of the great circle between two places, by the haversine formula."""
    for what, value, limit in (
        ("latitude", lat1, 90),
        ("longitude", lon1, 180),
        ("latitude", lat2, 90),
        ("longitude", lon2, 180),
    ):
        if not -limit <= value <= limit:
            raise BadPlace(what, value, limit)
    radius = _radius(unit)
    a = math.sin(math.radians(lat2 - lat1) / 2) ** 2 + math.sin(
        math.radians(lon2 - lon1) / 2
    ) ** 2 * math.cos(math.radians(lat1)) * math.cos(math.radians(lat2))
    return radius * 2 * math.asin(math.sqrt(a))


def _radius(unit: str | None) -> float:
    name = (unit or "").strip().lower()
    if not name or name in _KM:
        return EARTH_KM
    if name in _MILES:
        return EARTH_MILES
    raise BadUnit(unit or "")


_PLACES = ("double lat1", "double lon1", "double lat2", "double lon2")

NUMBERS = family(
    "MATHEMATICAL",
    {
        "Abs": (
            "The number without its sign.",
            Scalar(
                ("INT value",),
                "INT",
                lambda value: wrap32(abs(value)),
                WRAP32.format("abs({0})"),
            ),
            Scalar(
                ("BIGINT value",),
                "BIGINT",
                lambda value: wrap64(abs(value)),
                WRAP64.format("abs({0})"),
            ),
            Scalar(("DOUBLE value",), "DOUBLE", abs, "abs({0})"),
            Scalar(("DECIMAL value",), SAME, lambda value: value.copy_abs(), "({0}).copy_abs()"),
        ),
        "Ceil": (
            "The smallest integer that is not below the number.",
            Scalar(("INT value",), "INT", lambda value: value, "({0})"),
            Scalar(("BIGINT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("DOUBLE value",), "DOUBLE", _integral(math.ceil)),
            Scalar(("DECIMAL value",), SAME, typed=_to_integral(decimal.ROUND_CEILING)),
        ),
        "Floor": (
            "The largest integer that is not above the number.",
            Scalar(("INT value",), "INT", lambda value: value, "({0})"),
            Scalar(("BIGINT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("DOUBLE value",), "DOUBLE", _integral(math.floor)),
            Scalar(("DECIMAL value",), SAME, typed=_to_integral(decimal.ROUND_FLOOR)),
        ),
        "Round": (
            "The nearest integer, or the nearest number with so many decimals; halves go up.",
            Scalar(("INT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("BIGINT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("DOUBLE value",), "BIGINT", round_half_up),
            Scalar(("DOUBLE value", "INT decimalPlaces"), "DOUBLE", _round_to),
            Scalar(("DECIMAL value",), WHOLE, lambda value: _halves_up(value, 0)),
            Scalar(("DECIMAL value", "INT decimalPlaces"), SAME, typed=_keeping_scale(_halves_up)),
        ),
        "Trunc": (
            "The number without its decimals, or without those after the given place.",
            Scalar(("INT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("BIGINT value",), "BIGINT", lambda value: value, "({0})"),
            Scalar(("DOUBLE value",), "BIGINT", lambda value: saturate(value, LONG_MIN, LONG_MAX)),
            Scalar(("DOUBLE value", "INT decimalPlaces"), "DOUBLE", _trunc_to),
            Scalar(("DECIMAL value",), WHOLE, lambda value: _cut(value, 0)),
            Scalar(("DECIMAL value", "INT decimalPlaces"), SAME, typed=_keeping_scale(_cut)),
        ),
        "Sign": (
            "-1 for a negative number, 1 for a positive one, else 0.",
            *(Scalar((f"{kind} value",), "INT", sign) for kind in _KINDS),
        ),
        "Sqrt": ("The square root.", *_doubles(ieee(math.sqrt))),
        "Cbrt": ("The cube root.", *_doubles(cbrt)),
        "Exp": ("Euler's number to that power.", *_doubles(ieee(math.exp))),
        "Ln": ("The natural logarithm.", *_doubles(ln)),
        "log": (
            "The natural logarithm of a number, or its logarithm to the base that comes first.",
            *_doubles(ln),
            *_pairs(log, "base", "value"),
        ),
        "power": ("The base raised to the exponent.", *_pairs(power, "base", "exponent")),
        "sin": ("The sine of an angle in radians.", *_doubles(ieee(math.sin))),
        "cos": ("The cosine of an angle in radians.", *_doubles(ieee(math.cos))),
        "tan": ("The tangent of an angle in radians.", *_doubles(_TAN)),
        "cot": ("The cotangent of an angle in radians.", *_doubles(cot)),
        "asin": ("The angle in radians with that sine.", *_doubles(ieee(math.asin))),
        "acos": ("The angle in radians with that cosine.", *_doubles(ieee(math.acos))),
        "atan": ("The angle in radians with that tangent.", *_doubles(math.atan)),
        "atan2": ("The angle in radians of the point (x, y).", *_pairs(math.atan2, "y", "x")),
        "sinh": ("The hyperbolic sine.", *_doubles(sinh)),
        "cosh": ("The hyperbolic cosine.", *_doubles(ieee(math.cosh))),
        "tanh": ("The hyperbolic tangent.", *_doubles(math.tanh)),
        "degrees": ("Radians as degrees.", *_doubles(math.degrees)),
        "radians": ("Degrees as radians.", *_doubles(math.radians)),
        "pi": (
            "The ratio of a circle's circumference to its diameter.",
            Scalar((), "DOUBLE", lambda: math.pi, repr(math.pi)),
        ),
        "Random": (
            "A random number from 0 up to, but not including, 1.",
            Scalar((), "DOUBLE", random.random, volatile=True),
        ),
        "geo_distance": (
            "The distance between two places on Earth, in kilometres unless miles are asked for.",
            Scalar(_PLACES, "DOUBLE", geo_distance, nulls="pass"),
            Scalar((*_PLACES, "STRING unit"), "DOUBLE", geo_distance, nulls="pass"),
        ),
    },
)
