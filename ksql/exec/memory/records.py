"""Some records of topics in memory, for a look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import RawRecord
from ksql.exec.memory.driver import MemoryExtents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.exec.memory.driver import MemoryTopics, Offsets


class MemoryRecords:
    """The ``Records`` of statements over topics in memory."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        return MemoryExtents(self._topics).offsets_at(topics, time_ms)

    def read(
        self, spans: Mapping[tuple[str, int], tuple[int, int]], most: int | None = None
    ) -> list[RawRecord]:
        return [
            RawRecord(topic, 0, offset, stored.timestamp, stored.key, stored.value, stored.headers)
            for (topic, _), (start, end) in spans.items()
            for offset, stored in enumerate(
                self._topics.records.get(topic, [])[start:end][:most], start=start
            )
        ]

    def read_some(
        self, spans: Mapping[tuple[str, int], tuple[int, int]]
    ) -> tuple[list[RawRecord], bool]:
        """Return all of them."""
        return self.read(spans), True
