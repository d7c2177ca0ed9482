"""The common part of the stores in RocksDB: the position and the times of the last commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import Offset
from ksql.views.stores.base import Store, StoreSize

if TYPE_CHECKING:
    from ksql.views.stores.rocks import Rocks

POSITION = "position"
CLOCK = "clock"
HIDDEN = "hidden"
"""The time of the earliest window that a retention has hidden; earlier versions have no such."""
IN_USE = "in use"
"""A number of the store while its rows may be ahead of its position, or behind."""
PARTIAL = "partial"
"""A number of the store while its position lies inside a transaction of its topic."""
NUMBERS = (POSITION, CLOCK, HIDDEN, IN_USE, PARTIAL)


def numbers_of(offset: Offset, clock: int | None, hidden_from: int | None) -> dict[str, int | None]:
    """Return the numbers that a commit writes; what is None stays as it was."""
    stated: dict[str, int | None] = {POSITION: offset, CLOCK: clock, HIDDEN: hidden_from}
    return {name: number for name, number in stated.items() if number is not None}


class RocksStore(Store):
    """A store over one RocksDB, with what its numbers state."""

    def __init__(self, rocks: Rocks) -> None:
        self._rocks = rocks
        position = rocks.number(POSITION)
        self._position = None if position is None else Offset(position)
        self._clock = rocks.number(CLOCK)
        self._hidden_from = rocks.number(HIDDEN)

    def size(self) -> StoreSize:
        """Return what its files and its tables in memory have."""
        self._rocks.check_open()
        return StoreSize(self._rocks.about_rows(), self._rocks.size_bytes())

    @property
    def damage(self) -> str:
        return self._rocks.damage

    def position(self) -> Offset | None:
        self._rocks.check_open()
        return self._position

    def clock(self) -> int | None:
        self._rocks.check_open()
        return self._clock

    def hidden_from(self) -> int | None:
        self._rocks.check_open()
        return self._hidden_from

    def clear(self) -> None:
        self._rocks.check_open()
        self._rocks.clear(dict.fromkeys(NUMBERS))
        self._position = self._clock = self._hidden_from = None

    def _moved(self, offset: Offset, clock: int | None, hidden_from: int | None) -> None:
        """Note what a commit has written."""
        self._position = offset
        self._clock = self._clock if clock is None else clock
        self._hidden_from = self._hidden_from if hidden_from is None else hidden_from
