"""Records of several partitions in the order of their times, until all have come to the present.

A consumer gives what has arrived, perhaps all of one topic before the first record of another: a
stream would be joined with a table that is not there yet, and windows would close before half of
their records were read. So, while partitions are behind, a record waits until each of those has a
record to compare it with. Afterwards records are taken as they arrive.

Source: Kafka Streams' choice among a task's partitions (KIP-695).
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ksql.base.records import RawRecord

    Partition = tuple[str, int]


class Merging:
    """The records that wait; ``ends`` are the offsets up to which partitions are behind."""

    def __init__(self, ends: Mapping[Partition, int]) -> None:
        self._behind = dict(ends)
        self._held: defaultdict[Partition, deque[RawRecord]] = defaultdict(deque)

    def ready(
        self, records: Sequence[RawRecord], positions: Mapping[Partition, int]
    ) -> Sequence[RawRecord]:
        """Return the records whose turn has come, when some more have been read.

        ``positions`` is how far each partition has been read, these records included.
        """
        if not self._behind and not self._held:
            return records
        for record in records:
            self._held[record.topic, record.partition].append(record)
        self._behind = {
            place: end for place, end in self._behind.items() if positions.get(place, end) < end
        }
        return self._taken()

    def _taken(self) -> list[RawRecord]:
        held = self._held
        missing = sum(place not in held for place in self._behind)
        heads = [(queue[0].timestamp, place) for place, queue in held.items()]
        heapify(heads)
        taken: list[RawRecord] = []
        while heads and not missing:
            _, place = heappop(heads)
            queue = held[place]
            taken.append(queue.popleft())
            if queue:
                heappush(heads, (queue[0].timestamp, place))
            else:
                del held[place]
                missing += place in self._behind
        return taken
