"""The records of one side of a stream-stream join that have found no match yet.

They are found by key and time, to be forgotten when a match comes. They are found by time, to be
emitted when no match can come any more. The second way is an index in chunks; what was matched
meanwhile stays in it until its time comes.

Source: the outer join store of Kafka Streams' stream-stream join.
"""

from __future__ import annotations

import struct
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ksql.exec.operators.base import KeyOrder, Store

CHUNK_ENTRIES = 1024
_TIME = struct.Struct(">q")
_NUMBER = struct.Struct(">i")


class Unmatched(NamedTuple):
    """Records of one key and time that nothing can match any more, as they are stored."""

    time: int
    key: bytes
    rows: list[Any]


class UnmatchedBuffer:
    """The waiting records, during one call.

    The index is a list of chunks, each with its number, its lowest time and its length. ``order``
    is that of the keys.
    """

    def __init__(self, name: bytes, store: Store, stored: list[list[int]], order: KeyOrder) -> None:
        self._rows, self._index = name, name.upper()
        self._order = order
        self._store = store
        self._chunks = stored
        self._heap: list[tuple[int, bytes]] = []
        self._changed = False
        self._floor = min((lowest for _, lowest, _ in stored), default=None)

    @property
    def stored(self) -> list[list[int]]:
        """The chunks of the index."""
        return self._chunks

    @property
    def lowest(self) -> int | None:
        """The lowest time at which something may wait."""
        if not self._heap:
            return self._floor
        first = self._heap[0][0]
        return first if self._floor is None else min(self._floor, first)

    def load(self, places: Collection[tuple[bytes, int]]) -> None:
        """Fetch what waits under those keys and times."""
        self._store.load(self._rows, {_place(key, time) for key, time in places})

    def load_index(self, end: int) -> None:
        """Fetch the chunks that ``due`` takes, and the one that ``write`` continues."""
        chunks = [*self._before(end), *self._chunks[-1:]]
        self._store.load(self._index, {_NUMBER.pack(number) for number, _, _ in chunks})

    def load_due(self, end: int) -> None:
        """Fetch what ``due`` takes out; the index is there."""
        for number, _, _ in self._before(end):
            entries = self._store.get(self._index, _NUMBER.pack(number))
            self.load([(key, time) for time, key in entries if time < end])

    def _before(self, end: int) -> list[list[int]]:
        return [chunk for chunk in self._chunks if chunk[1] < end]

    def add(self, key: bytes, time: int, row: Sequence[Any]) -> None:
        """Let a record wait."""
        name = _place(key, time)
        rows = self._store.get(self._rows, name)
        if rows is None:
            heappush(self._heap, (time, key))
            self._changed = True
        self._store.put(self._rows, name, [*(rows or ()), row])

    def forget(self, key: bytes, time: int) -> None:
        """Forget the records of that key and time, which have found a match."""
        self._store.delete(self._rows, _place(key, time))

    def due(self, end: int) -> list[Unmatched]:
        """Take out what waits at a time before ``end``, by time, then by key."""
        self._take(self._before(end))
        due: list[tuple[int, bytes]] = []
        while self._heap and self._heap[0][0] < end:
            due.append(heappop(self._heap))
            self._changed = True
        self.load([(key, time) for time, key in due])
        out = []
        for time, key in due:
            name = _place(key, time)
            rows = self._store.get(self._rows, name)
            if rows is not None:
                self._store.delete(self._rows, name)
                out.append(Unmatched(time, key, rows))
        order = self._order
        out.sort(key=lambda unmatched: (unmatched.time, order(unmatched.key)))
        return out

    def write(self) -> None:
        """Put the index."""
        if not self._changed:
            return
        if self._heap and self._chunks and self._chunks[-1][2] < CHUNK_ENTRIES:
            self._take(self._chunks[-1:])
        number = max((number for number, _, _ in self._chunks), default=-1)
        entries = sorted(self._heap)
        for start in range(0, len(entries), CHUNK_ENTRIES):
            part = entries[start : start + CHUNK_ENTRIES]
            number += 1
            self._store.put(self._index, _NUMBER.pack(number), [list(entry) for entry in part])
            self._chunks.append([number, part[0][0], len(part)])

    def _take(self, chunks: list[list[int]]) -> None:
        """Move chunks of the index into memory."""
        if not chunks:
            return
        names = [_NUMBER.pack(number) for number, _, _ in chunks]
        self._store.load(self._index, names)
        for name in names:
            self._heap += map(tuple, self._store.get(self._index, name))
            self._store.delete(self._index, name)
        heapify(self._heap)
        self._chunks = [chunk for chunk in self._chunks if chunk not in chunks]
        self._floor = min((lowest for _, lowest, _ in self._chunks), default=None)
        self._changed = True


def _place(key: bytes, time: int) -> bytes:
    return _TIME.pack(time) + key
