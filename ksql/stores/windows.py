"""The windows of a key, by the order of the keys: no other window is looked at.

Time windows of a key lie by their starts; sessions by their ends, then by their starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.types.ints import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.stores.base import Rows, StoredRow
    from ksql.types.windowed import WindowedKeys

Between = tuple[int, int]
"""The least and the greatest time, both included."""

ALL: Final[Between] = (0, LONG_MAX)


def windows_of(
    rows: Rows, keys: WindowedKeys, key: bytes, starts: Between = ALL, ends: Between = ALL
) -> Iterator[StoredRow]:
    """Return the windows of a key that start and end between those times, in the keys' order."""
    size_ms = keys.size_ms
    if size_ms is None:
        low, high = max(ends[0], starts[0], 0), ends[1]
    else:
        low, high = max(starts[0], ends[0] - size_ms, 0), min(starts[1], ends[1] - size_ms)
    if high < low:
        return
    if size_ms is None:
        first, last = keys.join(key, (0, low)), keys.join(key, (LONG_MAX, high))
    else:
        first, last = keys.join(key, (low, 0)), keys.join(key, (high, 0))
    length = len(key) + keys.suffix_bytes
    for row in rows.range(first, last + b"\x00"):
        if len(row.key) != length:  # of a longer key that begins with this one and its window
            continue
        start, end = keys.split(row.key)[1]
        if starts[0] <= start <= starts[1] and ends[0] <= end <= ends[1]:
            yield row
