"""How the keys of windowed tables lie in a store, and reading all windows of one key.

Time windows: key + start; sessions: key + end + start; each 8 bytes, big-endian, as in the table's
topic, so that records go into the store as they come. A key is found in front of other keys that
begin with its bytes; the length of the stored key tells them apart.

Source: Kafka Streams' windowed serializers and session key schema.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.stores.base import Store, StoredRow

LAST_TIME = 2**48 - 1
"""The latest time that a scan looks for by default, in the year 10889.

Times up to it begin with two zero bytes, which keeps a scan of key ``1`` away from the keys
``10``, ``11`` and so on.
"""

_TIME = struct.Struct(">q")
_SPAN = struct.Struct(">qq")
_JUST_AFTER = b"\x00"


class Window(NamedTuple):
    """One window of one key; ``end`` is None for time windows, whose size the table knows."""

    key: bytes
    start: int
    end: int | None
    value: bytes
    timestamp: int


def window_key(key: bytes, start: int) -> bytes:
    """The stored key of a time window."""
    return key + _TIME.pack(start)


def session_key(key: bytes, start: int, end: int) -> bytes:
    """The stored key of a session."""
    return key + _SPAN.pack(end, start)


def time_window(row: StoredRow) -> Window:
    """Reads a row of a table with time windows."""
    (start,) = _TIME.unpack_from(row.key, len(row.key) - _TIME.size)
    return Window(row.key[: -_TIME.size], start, None, row.value, row.timestamp)


def session(row: StoredRow) -> Window:
    """Reads a row of a table with session windows."""
    end, start = _SPAN.unpack_from(row.key, len(row.key) - _SPAN.size)
    return Window(row.key[: -_SPAN.size], start, end, row.value, row.timestamp)


def windows(store: Store, key: bytes, first: int = 0, last: int = LAST_TIME) -> Iterator[Window]:
    """A key's time windows whose start lies in ``first`` to ``last``, both included, in order."""
    rows = store.range(window_key(key, first), window_key(key, last) + _JUST_AFTER)
    return (time_window(row) for row in _of_length(rows, len(key) + _TIME.size))


def sessions(store: Store, key: bytes, first: int = 0, last: int = LAST_TIME) -> Iterator[Window]:
    """A key's sessions whose end lies in ``first`` to ``last``, both included, by end and start."""
    latest = session_key(key, start=last, end=last)
    rows = store.range(session_key(key, 0, first), latest + _JUST_AFTER)
    return (session(row) for row in _of_length(rows, len(key) + _SPAN.size))


def _of_length(rows: Iterable[StoredRow], length: int) -> Iterator[StoredRow]:
    return (row for row in rows if len(row.key) == length)
