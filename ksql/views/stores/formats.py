"""The formats of stores, and the ways from one to the next: the one place for both.

A further format is one row in each of the two tables. They say how its values lie on disk, and how
a value of the format before becomes one. Whatever opens, copies and serves a store reads these
tables.

| format | a value on disk | written |
|---|---|---|
| 0 | the payload alone: its store knows no times | before values carried them |
| 1 | format byte, timestamp, payload (``values``) | today |

Source: KIP-258, ``RecordConverter``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ksql.views.stores import values
from ksql.views.stores.base import Stored

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
    return values.pack(data, UNKNOWN_TIME)


FORMATS: Final[Mapping[int, StoreFormat]] = {
    0: StoreFormat(number=0, pack=_plain, unpack=_untimed, timed=False),
    1: StoreFormat(number=1, pack=values.pack, unpack=values.unpack),
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
