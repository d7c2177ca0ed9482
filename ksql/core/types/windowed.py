"""The keys of windowed tables as bytes, in topics, stores and states.

Time windows: key + start. Sessions: key + end + start. Each is 8 bytes, big-endian: the windows of
one key lie together, in order.

Source: Kafka Streams' windowed serializers and session key schema.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

Bounds = tuple[int, int]
"""A window's start and end, in milliseconds."""

_TIME = struct.Struct(">q")
_SPAN = struct.Struct(">qq")


def window_key(key: bytes, start: int) -> bytes:
    """Return the key of a time window."""
    return key + _TIME.pack(start)


def session_key(key: bytes, start: int, end: int) -> bytes:
    """Return the key of a session."""
    return key + _SPAN.pack(end, start)


@dataclass(frozen=True, slots=True)
class WindowedKeys:
    """Writes and reads the keys of one table; ``size_ms`` is None for sessions."""

    size_ms: int | None

    @property
    def suffix_bytes(self) -> int:
        """How many bytes follow the key."""
        return _SPAN.size if self.size_ms is None else _TIME.size

    def join(self, key: bytes, bounds: Bounds) -> bytes:
        start, end = bounds
        return session_key(key, start, end) if self.size_ms is None else window_key(key, start)

    def split(self, data: bytes) -> tuple[bytes, Bounds]:
        """Return the key alone, and the bounds of its window; ``data`` has room for both."""
        if self.size_ms is None:
            end, start = _SPAN.unpack_from(data, len(data) - _SPAN.size)
            return data[: -_SPAN.size], (start, end)
        (start,) = _TIME.unpack_from(data, len(data) - _TIME.size)
        return data[: -_TIME.size], (start, start + self.size_ms)


def kept_by(data: bytes, *, session: bool) -> int:
    """Return the time that decides how long a window is kept.

    Its start, or the end of a session.
    """
    suffix = _SPAN.size if session else _TIME.size
    time_ms: int = _TIME.unpack_from(data, len(data) - suffix)[0]
    return time_ms


def all_kept_by(keys: Iterable[bytes], *, session: bool) -> list[int]:
    """Return the same of each of many."""
    unpack, at = _TIME.unpack_from, -(_SPAN.size if session else _TIME.size)
    return [unpack(key, at)[0] for key in keys]
