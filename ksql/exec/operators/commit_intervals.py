"""Cuts a group's changes into commit intervals by the time of records: one result for each.

With caching Kafka Streams gives out the last change of a key when it commits, as often as
``commit.interval.ms`` says by the clock. Here the interval is one of event time. A micro-batch of a
backlog may cover hours, and its changes are kept apart all the same. So a query that reads the
result later meets the changes that it would have met live, but for those within an interval.

The interval of a record is that of its sequence key, which never decreases in processing order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from ksql.exec.operators.base import Record, sequence_key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ksql.exec.operators.keyed_batches import Longs

Item = TypeVar("Item")
COMMIT_INTERVAL: Final = "commit.interval.ms"
_timestamp = itemgetter(3)


@dataclass(frozen=True, slots=True)
class CommitIntervals:
    """Intervals of at least a millisecond; each begins at a multiple of its length."""

    length_ms: int

    def begin(self, sequence_key: int) -> int:
        return sequence_key - sequence_key % self.length_ms

    def divide(
        self, items: Sequence[Item], sequence_key: Callable[[Item], int]
    ) -> Iterator[tuple[int, Sequence[Item]]]:
        """Yield the begin and the items of each interval; they come in processing order."""
        if not items:
            return
        first, last = sequence_key(items[0]), sequence_key(items[-1])
        if self.begin(first) == self.begin(last):  # as of nearly all micro-batches that are live
            yield self.begin(first), items
            return
        for begin, some in groupby(items, key=lambda item: self.begin(sequence_key(item))):
            yield begin, list(some)

    def runs(self, sequence_keys: Sequence[int] | Longs) -> Iterator[tuple[bool, int, int]]:
        """Yield runs of items, and whether each item of a run has an interval of its own.

        Other runs are those of one interval. A run has the place of its first item, and the one
        after its last.
        """
        numbers = np.asarray(sequence_keys, np.int64) // self.length_ms
        begins = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        alone_from = 0
        for begin, end in pairwise([0, *begins.tolist(), len(numbers)]):
            if end - begin > 1:
                if alone_from < begin:
                    yield True, alone_from, begin
                yield False, begin, end
                alone_from = end
        if alone_from < len(numbers):
            yield True, alone_from, len(numbers)

    def records(self, records: Sequence[Record]) -> Iterator[tuple[int, Sequence[Record]]]:
        """Yield the begin and the records of each interval."""
        return self.divide(records, sequence_key_of)


def by_time(changes: Iterable[Record], begin: int) -> list[Record]:
    """Return the changes of an interval in the order of their times.

    That is their order among those of other tasks, too: it becomes their sequence key. A change
    that is older than the interval stays in it, and comes before those that are not.
    """
    ordered = sorted(changes, key=_timestamp)
    return [change._replace(sequence_key=max(change.timestamp, begin)) for change in ordered]


class IntervalStates(Generic[Item]):
    """The results of folding in the current commit interval, and in those before it.

    Without intervals there is one for all. ``states`` stays the same mapping, as loops hold it.
    """

    def __init__(self, intervals: CommitIntervals | None) -> None:
        self._length_ms = _ALWAYS if intervals is None else intervals.length_ms
        self._begin = 0
        self._before: list[tuple[int, list[tuple[Hashable, Item]]]] = []
        self.states: dict[Hashable, Item] = {}

    def turn(self, sequence_key: int) -> tuple[int, int]:
        """Go to the interval that has the sequence key; return its begin and end."""
        length_ms = self._length_ms
        begin = sequence_key - sequence_key % length_ms
        if begin != self._begin:
            self._put_away()
            self._begin = begin
        return begin, begin + length_ms

    def each(self) -> Iterator[Item]:
        """Yield what is held for all intervals."""
        yield from (item for _, entries in self._before for _, item in entries)
        yield from self.states.values()

    def finish(self) -> list[tuple[int, list[tuple[Hashable, Item]]]]:
        """Return the begin of each interval and its entries; forget them."""
        self._put_away()
        before, self._before = self._before, []
        return before

    def _put_away(self) -> None:
        if self.states:
            self._before.append((self._begin, list(self.states.items())))
            self.states.clear()


_ALWAYS: Final = 1 << 62
