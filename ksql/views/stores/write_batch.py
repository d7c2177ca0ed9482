"""The changes of some keys in memory: the last one of each, found by key or in the keys' order."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.views.stores.base import Change, StoredRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence


_ENTRY_BYTES = 150
"""What Python keeps for an entry besides its bytes: a tuple, two headers, a slot, a key's place."""

_FEW = 64
"""So many new keys are put in their places one by one: no look at all the others is needed."""


class WriteBatch:
    """A dictionary whose keys are sorted when a range is asked for; for one thread at a time.

    Only ``get`` may be called while another thread changes it. Keys are never taken out one by
    one, so a dictionary's order is that of arrival: what follows the sorted ones is new.
    """

    def __init__(self) -> None:
        self._last: dict[bytes, Change] = {}
        self._order: list[bytes] = []
        self.bytes = 0

    def __len__(self) -> int:
        """Return how many keys there are, deleted ones too."""
        return len(self._last)

    def get(self, key: bytes) -> Change | None:
        """Return the last change of that key, or None."""
        return self._last.get(key)

    def changes(self) -> Iterable[Change]:
        """Return the last change of each key, in no order."""
        return self._last.values()

    def in_order(self) -> list[Change]:
        """Return all changes in the keys' order; it changes nothing, so any thread may ask.

        Cheaper than ``between`` where nobody asks again.
        """
        return sorted(self._last.values(), key=itemgetter(0))

    def update(self, fresh: dict[bytes, Change]) -> None:
        """Take changes by their keys."""
        replaced = list(filter(None, map(self._last.get, fresh)))
        self._last.update(fresh)
        self.bytes += _size(fresh.values()) - _size(replaced)

    def between(self, lo: bytes | None, hi: bytes | None) -> list[Change]:
        """Return the changes of the keys ``lo <= key < hi`` in order."""
        last, order = self._last, self._order
        fresh = len(last) - len(order)
        new = islice(reversed(last), fresh)
        if fresh <= _FEW:
            for key in new:
                insort(order, key)
        else:
            order += new
            order.sort()  # the front is in order already, so this merges what is new into it
        start = 0 if lo is None else bisect_left(order, lo)
        stop = len(order) if hi is None else bisect_left(order, hi)
        return [last[key] for key in order[start:stop]]


def coalesced(changes: Iterable[Change]) -> dict[bytes, Change]:
    """Return the last change of each key."""
    return {change[0]: change for change in changes}


def laid_over(waiting: Sequence[Change], kept: Iterator[StoredRow]) -> Iterator[StoredRow]:
    """Lay changes over rows; both are in the keys' order."""
    changes = iter(waiting)
    change = next(changes, None)
    for row in kept:
        while change is not None and change[0] < row[0]:
            if change[1] is not None:
                yield StoredRow(change[0], change[1], change[2])
            change = next(changes, None)
        if change is None or change[0] != row[0]:
            yield row
    while change is not None:
        if change[1] is not None:
            yield StoredRow(change[0], change[1], change[2])
        change = next(changes, None)


def _size(changes: Collection[Change]) -> int:
    values = filter(None, map(itemgetter(1), changes))
    keys = map(itemgetter(0), changes)
    return _ENTRY_BYTES * len(changes) + sum(map(len, keys)) + sum(map(len, values))
