"""DECIMAL: the types of results, exact evaluation, and whether a value fits.

Every value of type DECIMAL(p, s) carries exactly s digits after the point. Results are exact
or an error: nothing is rounded but by a CAST.
Source: docs/sql/types.md#decimals.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Literal

from ksql.core.errors import EXCERPT, excerpt
from ksql.core.types import model

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core.types.model import SqlType

Operator = Literal["+", "-", "*", "/", "%"]

INTEGER_DIGITS = 10
BIGINT_DIGITS = 19


def _context(precision: int, rounding: str, *, exact: bool) -> decimal.Context:
    traps = [
        decimal.InvalidOperation,
        decimal.DivisionByZero,
        decimal.Overflow,
        *([decimal.Inexact] if exact else []),
    ]
    return decimal.Context(
        prec=precision,
        rounding=rounding,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=traps,
    )


EXACT = _context(10_000, decimal.ROUND_HALF_UP, exact=True)
HALF_UP = _context(10_000, decimal.ROUND_HALF_UP, exact=False)


def unit(scale: int) -> decimal.Decimal:
    """Return the smallest step of that scale: what ``quantize`` takes."""
    return decimal.Decimal((0, (1,), -scale))


def result_type(op: Operator, a: model.Decimal, b: model.Decimal) -> model.Decimal:
    """Return the type of an arithmetic operation on two decimals."""
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    match op:
        case "+" | "-":
            scale = max(s1, s2)
            return model.Decimal(scale + max(p1 - s1, p2 - s2) + 1, scale)
        case "*":
            return model.Decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return model.Decimal(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return model.Decimal(min(p1 - s1, p2 - s2) + scale, scale)


def widen(a: model.Decimal, b: model.Decimal) -> model.Decimal:
    """Return the smallest type that holds the values of both."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return model.Decimal(whole + scale, scale)


def as_decimal(type_: SqlType) -> model.Decimal | None:
    """Return the decimal type that holds every value of the type; None if there is none."""
    match type_:
        case model.Decimal():
            return type_
        case model.INTEGER:
            return model.Decimal(INTEGER_DIGITS, 0)
        case model.BIGINT:
            return model.Decimal(BIGINT_DIGITS, 0)
        case _:
            return None


def holds(wide: model.Decimal, narrow: model.Decimal) -> bool:
    """Return whether each value of ``narrow`` is one of ``wide``."""
    return (
        narrow.scale <= wide.scale
        and narrow.precision - narrow.scale <= wide.precision - wide.scale
    )


def of_literal(value: decimal.Decimal) -> model.Decimal:
    """Return the type of a literal.

    Its digits and scale; a value below one counts its leading zero.
    """
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    whole = max(len(digits) + int(exponent), 0)
    return model.Decimal(max(whole, 1) + scale, scale)


def _overflow(value: decimal.Decimal, type_: model.Decimal) -> ArithmeticError:
    digits = type_.precision - type_.scale
    return ArithmeticError(
        f"Numeric field overflow: A field with precision {type_.precision} and scale {type_.scale} "
        f"must round to an absolute value less than 10^{digits}. Got {_shown(value)}"
    )


def _shown(value: decimal.Decimal) -> str:
    """Return all digits, unless an exponent would make them a page."""
    return f"{value:f}" if abs(value.adjusted()) < EXCERPT else excerpt(str(value))


def _settled(value: decimal.Decimal) -> decimal.Decimal:
    """Return the value without a minus before zero: there is none in SQL."""
    return value if value else value.copy_abs()


def fitter(type_: model.Decimal, *, exact: bool) -> Callable[[decimal.Decimal], decimal.Decimal]:
    """Return a function that brings a value to the type's scale.

    It checks the size first, then rounds half up; if ``exact`` it raises instead of rounding.

    Raises: ArithmeticError.
    """
    limit = decimal.Decimal((0, (1,), type_.precision - type_.scale))
    step = unit(type_.scale)
    context = EXACT if exact else HALF_UP

    def fit(value: decimal.Decimal) -> decimal.Decimal:
        if not value.is_finite():
            raise ArithmeticError(f"{value} is not a number")
        if abs(value) >= limit:
            raise _overflow(value, type_)
        return _settled(value.quantize(step, context=context))

    return fit


def from_double(type_: model.Decimal) -> Callable[[float], decimal.Decimal]:
    """Return the CAST from DOUBLE: the binary value, half up to the precision, then the scale."""
    context = _context(type_.precision, decimal.ROUND_HALF_UP, exact=False)
    fit = fitter(type_, exact=False)

    def convert(value: float) -> decimal.Decimal:
        return fit(context.create_decimal_from_float(value))

    return convert


def exact_double(value: float) -> decimal.Decimal:
    """Return the decimal that a double prints as: what it is compared with decimals by.

    Raises: ArithmeticError for NaN and infinities.
    """
    exact = decimal.Decimal(repr(value))
    if not exact.is_finite():
        raise ArithmeticError(f"{value} is not a number")
    return exact


def operation(
    op: Operator, type_: model.Decimal
) -> Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal]:
    """Return the operation with that result type; it raises where the exact result does not fit.

    Raises: ArithmeticError.
    """
    context = _context(type_.precision, decimal.ROUND_HALF_UP, exact=True)
    apply = {
        "+": context.add,
        "-": context.subtract,
        "*": context.multiply,
        "/": context.divide,
        "%": context.remainder,
    }[op]
    step = unit(type_.scale)

    def run(left: decimal.Decimal, right: decimal.Decimal) -> decimal.Decimal:
        return _settled(apply(left, right).quantize(step, context=EXACT))

    return run
