"""The records of topics in memory for the queries of clients, and where those topics end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ksql.core.records import RawRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ksql.exec.memory.driver import MemoryTopics

_POLL_S = 0.25

Offsets = dict[tuple[str, int], int]


class MemoryExtents:
    """Which topics there are; each has one partition that begins with offset 0."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        return list(self._topics.known)

    def begin_offsets(self, topics: Iterable[str]) -> Offsets:
        """Return the first offset of each topic."""
        return {(topic, 0): 0 for topic in topics}

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        """Return the offset after the last record of each topic."""
        return {(topic, 0): len(self._topics.records.get(topic, ())) for topic in topics}


class MemoryFeed:
    """Records in the order in which they were appended; one thread reads, any may close."""

    def __init__(
        self,
        topics: MemoryTopics,
        start: Mapping[tuple[str, int], int],
        on_end: Callable[[], None] = lambda: None,
        *,
        follow: bool = True,
    ) -> None:
        """Wait, with ``follow``, for records that are still to come; else end with the last one."""
        self._topics = topics
        self._follow = follow
        self._on_end = on_end
        self._ending = threading.Event()
        self._closed = False
        self._held: set[tuple[str, int]] = set()
        self.positions = dict(start)

    @property
    def open(self) -> bool:
        """Whether there may be more to read."""
        return not self._ending.is_set()

    def poll(self) -> list[RawRecord]:
        """Return the records that are there; without any wait a moment for the next."""
        with self._topics.written:
            if self._follow and not self._is_behind():
                self._topics.written.wait(_POLL_S)
            return self._taken()

    def hold(self, places: Collection[tuple[str, int]]) -> None:
        """Read no more of these partitions, until another call leaves them out."""
        self._held = set(places)

    def end(self) -> None:
        """Let the reading thread come to an end by itself."""
        self._ending.set()

    def close(self) -> None:
        """End it."""
        self.end()
        if not self._closed:
            self._closed = True
            self._on_end()

    def _is_behind(self) -> bool:
        ends = MemoryExtents(self._topics).end_offsets(topic for topic, _ in self._free())
        return any(self.positions[partition] < end for partition, end in ends.items())

    def _taken(self) -> list[RawRecord]:
        records = []
        for topic, partition in self._free():
            begin = self.positions[topic, partition]
            log = self._topics.records.get(topic, [])[begin:]
            records += [
                (
                    entry.sequence,
                    RawRecord(
                        topic,
                        partition,
                        offset,
                        entry.timestamp,
                        entry.key,
                        entry.value,
                        list(entry.headers or ()),
                    ),
                )
                for offset, entry in enumerate(log, begin)
            ]
            self.positions[topic, partition] = begin + len(log)
        if not self._follow and not records:
            self.end()
        return [record for _, record in sorted(records, key=lambda numbered: numbered[0])]

    def _free(self) -> list[tuple[str, int]]:
        return [partition for partition in self.positions if partition not in self._held]
