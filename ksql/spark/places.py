"""The partitions of results: for windowed ones that of the key without its window.

Kafka's client hashes the whole key, so that of windowed records the partition is given to it. It is
given for others as well where a task's records go to all partitions: sorted out, they cost the
client a third less than taking turns, which fills many batches at once. A key's partition is found
once while it is remembered.

Source: Kafka Streams' ``WindowedStreamPartitioner``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from ksql.dataflow.murmur2 import partitions_of
from ksql.dataflow.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.base.records import OutRecord

ANYWHERE: Final = -1
"""Kafka's client chooses the partition: by the whole key, or any for a record without one."""
_MOST: Final = 100_000


class Places:
    """The partitions of a topic with so many; the last ``window_bytes`` of a key do not count."""

    def __init__(self, count: int, window_bytes: int) -> None:
        self._count = count
        self._window_bytes = window_bytes
        self._memory = Remembered(lambda keys: partitions_of(keys, count), _MOST)

    def sorted_out(
        self, records: Iterable[OutRecord], home: int = ANYWHERE
    ) -> Mapping[int, list[OutRecord]]:
        """Return the records by their partition, in their order; ``home`` is that of no key."""
        end, records = -self._window_bytes or None, list(records)
        if self._count == 1:  # with a key or without
            return {0: records}
        home = home if home < self._count else ANYWHERE
        keys = [b"" if record[0] is None else record[0][:end] for record in records]
        known = self.of(keys)
        out: defaultdict[int, list[OutRecord]] = defaultdict(list)
        for key, record in zip(keys, records, strict=True):
            out[home if record[0] is None else known[key]].append(record)
        return out

    def of(self, keys: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return the partitions of at least these keys, which are without their windows."""
        return self._memory.of(keys)
