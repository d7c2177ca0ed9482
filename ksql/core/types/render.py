"""Values as Java prints them (CAST to STRING and some functions), and the order of a HashMap.

Functions of maps that depend on an order (REDUCE over DOUBLEs, the text of a map) follow the order
of Java's HashMap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ksql.core.types import model
from ksql.core.types.times import format_date, format_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ksql.core.types.model import SqlType


_INEXACT, _TOO_LONG = 2.0**53, 2.0**63
_TOLD_BITS = 55


def java_double(value: float) -> str:
    """Return a double as ``Double.toString`` prints it: 1.0E10, 0.001, 1.0E-4."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    mantissa, _, exponent = _shortest(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)  # the point's place in the digits
    digits = digits.rstrip("0") or "0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _shortest(value: float) -> str:
    """Return the shortest text that reads back, but of two digits at least.

    The nearest such (4.9E-324, not 5E-324). Of an integer that a double no longer tells apart from
    its neighbours Java drops only as many digits as the lost bits are worth.
    """
    if _INEXACT <= value < _TOO_LONG:
        whole = int(value)
        lost = len(str(1 << max(whole.bit_length() - _TOLD_BITS, 0))) - 1
        return f"{(whole + 10**lost // 2) // 10**lost}e{lost}"
    two = f"{value:.1e}"
    return two if float(two) == value else repr(value)


def _java_time(value: int) -> str:
    minutes, seconds = divmod(value // 1000, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _java_timestamp(value: int) -> str:
    """Print as ``java.sql.Timestamp`` does: a blank for the T, no needless zeros at the end."""
    head, _, fraction = format_timestamp(value).replace("T", " ").rpartition(".")
    return f"{head}.{fraction.rstrip('0') or '0'}"


def _java_bytes(value: bytes) -> str:
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"


def _plain(value: Any) -> str:
    return str(value)


_LEAVES: dict[SqlType, Callable[[Any], str]] = {
    model.BOOLEAN: lambda value: "true" if value else "false",
    model.INTEGER: _plain,
    model.BIGINT: _plain,
    model.DOUBLE: java_double,
    model.STRING: _plain,
    model.BYTES: _java_bytes,
    model.DATE: format_date,
    model.TIME: _java_time,
    model.TIMESTAMP: _java_timestamp,
    model.NULL: _plain,
    model.INTERVAL: _plain,
}


def stringer(type_: SqlType) -> Callable[[Any], str]:
    """Return a function that prints values as ``String.valueOf`` does; NULL gives ``null``."""
    match type_:
        case model.Array(item):
            return _array(stringer(item))
        case model.Map(key, value):
            return _map(stringer(key), stringer(value))
        case model.Struct(fields):
            return _struct({field.name: stringer(field.type) for field in fields})
        case model.Decimal():
            return _or_null(_plain)
        case _:
            return _or_null(_LEAVES[type_])


def java_string(value: Any, type_: SqlType) -> str:
    """Return the value as ``String.valueOf`` prints it."""
    return stringer(type_)(value)


def _or_null(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else text(value)


def _array(item: Callable[[Any], str]) -> Callable[[Any], str]:
    return _or_null(lambda value: f"[{', '.join(map(item, value))}]")


def _map(key: Callable[[Any], str], item: Callable[[Any], str]) -> Callable[[Any], str]:
    def text(value: dict[Any, Any]) -> str:
        return f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in entries(value))}}}"

    return _or_null(text)


def _struct(fields: dict[str, Callable[[Any], str]]) -> Callable[[Any], str]:
    """Return a printer like Connect's Struct, which leaves fields without a value out."""

    def text(value: dict[str, Any]) -> str:
        shown = (
            f"{name}={fields[name](field)}" for name, field in value.items() if field is not None
        )
        return f"Struct{{{','.join(shown)}}}"

    return _or_null(text)


_WORD, _HALF = 1 << 32, 1 << 31
_UNIT = 2  # bytes of a UTF-16 unit


def hash_code(key: str | int) -> int:
    """Return Java's hashCode of a STRING or an integer, as 32 bits without sign."""
    if isinstance(key, int):
        low = key % _WORD
        return low if -_HALF <= key < _HALF else low ^ (key >> 32) % _WORD
    if key.isascii():
        units: Iterable[int] = key.encode()
    else:
        data = key.encode("utf-16-le", "surrogatepass")
        units = (data[i] | data[i + 1] << 8 for i in range(0, len(data), _UNIT))
    code = 0
    for unit in units:
        code = (31 * code + unit) % _WORD
    return code


def entries(values: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the entries of a map that was made for just as many, in Java's order.

    Keys of the same bucket keep their order. Maps with keys of other types than STRING, INTEGER and
    BIGINT keep theirs as a whole.
    """
    if not all(type(key) is str or type(key) is int for key in values):
        return list(values.items())
    mask = _buckets(len(values)) - 1
    return sorted(values.items(), key=lambda entry: _spread(hash_code(entry[0])) & mask)


def _spread(code: int) -> int:
    return code ^ code >> 16


def _buckets(size: int) -> int:
    """Return the length of the table: a power of two of which three quarters hold the entries."""
    count = 2
    while count * 3 // 4 < size:
        count *= 2
    return count
