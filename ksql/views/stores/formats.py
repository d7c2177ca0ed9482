"""The formats of stores, the bytes of a stored value, and conversions to the next format.

A further format is one row in each of the two tables. They say how its values lie on disk, and how
a value of the format before becomes one. Whatever opens, copies and serves a store reads these
tables.

| format | a value on disk | written |
|---|---|---|
| 0 | the payload alone: its store knows no times | before values carried them |
| 1 | format byte, timestamp, payload (``values``) | today |

Source: KIP-258, ``RecordConverter``.

A stored value is its format, its timestamp and its payload.

One byte says the format, so that values of two formats can lie in one store while it is being
upgraded. In format 1 the record's timestamp (8 bytes, big-endian, signed, milliseconds) and the
payload as it came from the topic follow.

Source: KIP-258.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ksql.views.stores.base import NewerStore, Stored

VALUE_FORMAT = 1

_HEAD = struct.Struct(">Bq")
_HEAD_BYTES = _HEAD.size


def pack(value: bytes, timestamp: int) -> bytes:
    """Return the payload with its timestamp, in the newest format."""
    return _HEAD.pack(VALUE_FORMAT, timestamp) + value


def unpack(data: bytes) -> Stored:
    """Return the payload and its timestamp.

    Raises: NewerStore for a format that this version does not know, ValueError for damage.
    """
    try:
        version, timestamp = _HEAD.unpack_from(data)
    except struct.error as error:
        raise ValueError(f"a stored value has {len(data)} bytes only") from error
    if version != VALUE_FORMAT:
        if version == 0:
            raise ValueError("a stored value has format 0, which was never written")
        raise NewerStore("a stored value", version, VALUE_FORMAT)
    return Stored(data[_HEAD_BYTES:], timestamp)


UNKNOWN_TIME: Final = -1
"""The time of a row whose store has none; the next record of its key brings one."""

Convert = Callable[[bytes], bytes]
"""From the bytes of a stored value to those of the next format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFormat:
    """How values lie in a store; ``timed``: whether they carry their times."""

    number: int
    pack: Callable[[bytes, int], bytes]
    unpack: Callable[[bytes], Stored]
    timed: bool = True


def _plain(value: bytes, _timestamp: int) -> bytes:
    return value


def _untimed(data: bytes) -> Stored:
    return Stored(data, UNKNOWN_TIME)


def _with_unknown_time(data: bytes) -> bytes:
    return pack(data, UNKNOWN_TIME)


FORMATS: Final[Mapping[int, StoreFormat]] = {
    0: StoreFormat(number=0, pack=_plain, unpack=_untimed, timed=False),
    1: StoreFormat(number=1, pack=pack, unpack=unpack),
}

CONVERTERS: Final[Mapping[tuple[int, int], Convert]] = {
    (0, 1): _with_unknown_time,
}


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats that a version of the service knows; it writes the newest."""

    rows: Mapping[int, StoreFormat]
    converters: Mapping[tuple[int, int], Convert]

    @property
    def newest(self) -> int:
        """The number of the format in which new stores are made."""
        return max(self.rows)

    def convert(self, number: int) -> Convert:
        """Return the way of a value from that format to the newest, step by step."""
        steps = [self.converters[n, n + 1] for n in range(number, self.newest)]

        def composed(data: bytes) -> bytes:
            for step in steps:
                data = step(data)
            return data

        return steps[0] if len(steps) == 1 else composed


KNOWN: Final = Formats(FORMATS, CONVERTERS)
