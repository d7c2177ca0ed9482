"""Records of several partitions in the order of their times, until all have come to the present.

A consumer gives what has arrived, perhaps all of one topic before the first record of another. A
stream would be joined with a table that is not there yet. Windows would close before half of their
records were read. So, while partitions are behind, a record waits until each of those has a record
to compare it with. Afterwards records are taken as they arrive.

Much may come before the record that all wait for. When waiting records have filled their room, no
more is read of their partitions (``enough``) until half of them have been taken.

Source: Kafka Streams' choice among a task's partitions (KIP-695), its
``buffered.records.per.partition``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ksql.core.records import RawRecord

    Partition = tuple[str, int]

DEFAULT_ROOM: Final = 33_554_432
_RECORD_BYTES: Final = 400
_HEADER_BYTES: Final = 150


class Merging:
    """The records that wait; ``ends`` are the offsets up to which partitions are behind.

    ``room`` is about how many bytes may wait.
    """

    def __init__(self, ends: Mapping[Partition, int], room: int = DEFAULT_ROOM) -> None:
        self._behind = dict(ends)
        self._room = room
        self._bytes = 0
        self._full = False
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
            self._bytes += _size(record)
        self._behind = {
            partition: end
            for partition, end in self._behind.items()
            if positions.get(partition, end) < end
        }
        taken = self._taken()
        self._bytes -= sum(map(_size, taken))
        self._full = self._bytes > (self._room // 2 if self._full else self._room)
        return taken

    @property
    def enough(self) -> Collection[Partition]:
        """The partitions of which no more should be read for now.

        One of which nothing waits is never among them: the others wait for it.
        """
        return set(self._held) if self._full else ()

    def _taken(self) -> list[RawRecord]:
        held = self._held
        missing = sum(partition not in held for partition in self._behind)
        heads = [(queue[0].timestamp, partition) for partition, queue in held.items()]
        heapify(heads)
        taken: list[RawRecord] = []
        while heads and not missing:
            _, partition = heappop(heads)
            queue = held[partition]
            taken.append(queue.popleft())
            if queue:
                heappush(heads, (queue[0].timestamp, partition))
            else:
                del held[partition]
                missing += partition in self._behind
        return taken


def _size(record: RawRecord) -> int:
    """Estimate how many bytes a record takes in memory."""
    size = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(_HEADER_BYTES + len(name) + len(value or b"") for name, value in record.headers)
    return size
