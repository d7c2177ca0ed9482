"""Java's fixed-width integers and its conversions between numbers."""

from __future__ import annotations

import math

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
WRAP32 = "(({} + 0x80000000 & 0xFFFFFFFF) - 0x80000000)"
WRAP64 = "(({} + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000)"
"""``wrap32`` and ``wrap64`` as templates of code: for generated functions, which save the call."""


def wrap32(value: int) -> int:
    """Return the value as 32 bits hold it: INTEGER overflow is silent."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def wrap64(value: int) -> int:
    """Return the value as 64 bits hold it: BIGINT overflow is silent."""
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def divide(a: int, b: int) -> int:
    """Divide integers toward zero.

    Raises: ZeroDivisionError.
    """
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) is (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    """Return the remainder with the sign of the dividend.

    Raises: ZeroDivisionError.
    """
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def saturate(value: float, low: int, high: int) -> int:
    """Return a double as an integer: toward zero, the limits beyond them, NaN as zero."""
    if value != value:
        return 0
    if value <= low:
        return low
    return high if value >= high else math.trunc(value)


def divide_double(a: float, b: float) -> float:
    """Divide as IEEE does: by zero it gives an infinity or NaN. None raises TypeError."""
    if b != 0:
        return a / b
    if a != a or a == 0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def remainder_double(a: float, b: float) -> float:
    """Return the IEEE remainder with the sign of the dividend, or NaN. None raises TypeError."""
    if b == 0 or math.isinf(a):
        return a * b * math.nan
    return math.fmod(a, b)
