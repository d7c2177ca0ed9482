"""The order in which Java's HashMap gives its entries back.

Functions of maps that depend on an order (REDUCE over DOUBLEs, the text of a map) follow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

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
