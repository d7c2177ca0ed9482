"""Which changes of a group become one: those of a commit interval, by the time of records.

With caching Kafka Streams gives out the last change of a key when it commits, as often as
``commit.interval.ms`` says by the clock. Here the interval is one of event time. A micro-batch of a
backlog may cover hours, and its changes are kept apart all the same. So a query that reads the
result later meets the changes that it would have met live, but for those within an interval.

The interval of a record is that of its sequence key, which never decreases in processing order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ksql.exec.operators.base import Record

Item = TypeVar("Item")
COMMIT_INTERVAL: Final = "commit.interval.ms"
_sequence_key = itemgetter(9)


@dataclass(frozen=True, slots=True)
class CommitIntervals:
    """Intervals of at least a millisecond; each begins at a multiple of its length."""

    length_ms: int

    def begin(self, sequence_key: int) -> int:
        """Return the begin of the interval of a sequence key."""
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

    def records(self, records: Sequence[Record]) -> Iterator[tuple[int, Sequence[Record]]]:
        """Yield the begin and the records of each interval."""
        return self.divide(records, _sequence_key)


def by_time(changes: Iterable[Record], begin: int) -> list[Record]:
    """Return the changes of an interval in the order of their times.

    That is their order among those of other tasks, too: it becomes their sequence key. A change
    that is older than the interval stays in it.
    """
    placed = [change._replace(sequence_key=max(change.timestamp, begin)) for change in changes]
    placed.sort(key=_sequence_key)
    return placed


class IntervalStates(Generic[Item]):
    """A mapping for each commit interval; one for all where there are no intervals."""

    def __init__(self, intervals: CommitIntervals | None) -> None:
        self._intervals = intervals
        self.by_begin: dict[int, dict[Hashable, Item]] = {}

    def at(self, sequence_key: int) -> tuple[int, float, dict[Hashable, Item]]:
        """Return the bounds of the interval that has the sequence key, and its mapping."""
        if self._intervals is None:
            return sequence_key, _NEVER, self.by_begin.setdefault(0, {})
        begin = self._intervals.begin(sequence_key)
        return begin, begin + self._intervals.length_ms, self.by_begin.setdefault(begin, {})


_NEVER: Final[Any] = float("inf")
