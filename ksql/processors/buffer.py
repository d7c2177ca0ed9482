"""The records of one side of a stream-stream join, by key and time.

A key's records lie in slices of time about as long as the join's window, so that a record looks
into one or two of them. A slice has a head with its newest records; when these are many they are
sealed as a chunk, which is never written again: a busy key costs what its new records cost.
Slices are forgotten by segment, all keys at once.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.base.records import Row
    from ksql.processors.base import Store
    from ksql.processors.sides import Side

CHUNK_RECORDS = 64
Place = tuple[bytes, int]
"""A packed key and the number of a slice."""
_SLICE = struct.Struct(">q")
_CHUNK = struct.Struct(">qi")
_SHORTEST_SLICE_MS = 1_000
_SHORTEST_SEGMENT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Slices:
    """How time is cut, in milliseconds; ``per_segment`` slices are forgotten together."""

    length_ms: int
    per_segment: int

    @classmethod
    def of(cls, span_ms: int, retention_ms: int) -> Slices:
        """Return the slices for a window of that span whose records are kept so long."""
        length = max(span_ms + 1, _SHORTEST_SLICE_MS)
        segment = max(retention_ms // 2, _SHORTEST_SEGMENT_MS)
        return cls(length, -(-segment // length))


class Slice:
    """One key's records of a slice; ``waits``: some may be waiting for a first match."""

    __slots__ = ("changed", "fresh", "rows", "sealed", "times", "waits")

    def __init__(self, sealed: int, waits: bool, fresh: list[Any]) -> None:
        self.sealed = sealed
        self.waits = waits
        self.fresh = fresh
        self.changed = False
        self.times: list[int] | None = None
        self.rows: list[Row] = []

    def add(self, time: int, row: Row, stored: list[Any]) -> None:
        """Keep a record, behind those of the same time."""
        self.fresh.append([time, stored])
        self.changed = True
        if self.times is not None:
            place = bisect_right(self.times, time)
            self.times.insert(place, time)
            self.rows.insert(place, row)

    def show(self, chunks: Iterable[list[Any]], side: Side) -> None:
        """Lay out all records by time, those of one time in the order in which they came."""
        records = [record for chunk in chunks for record in chunk]
        records += self.fresh
        records.sort(key=_time)
        self.times = [time for time, _ in records]
        self.rows = [side.row(stored) for _, stored in records]

    def between(self, first: int, last: int) -> tuple[list[int], list[Row]]:
        """Return the times and rows of the records in that stretch, both ends included."""
        times = self.times
        if not times:
            return [], []
        if first <= times[0] and times[-1] <= last:
            return times, self.rows
        start, end = bisect_left(times, first), bisect_right(times, last)
        return times[start:end], self.rows[start:end]


class Buffer:
    """The records of a side during one call.

    ``observed`` is the highest time among its records, ``segments`` those that have any. What is
    older than ``retention_ms`` before that time is not found any more, kept or not.
    """

    def __init__(
        self, name: bytes, side: Side, slices: Slices, retention_ms: int, stored: list[Any]
    ) -> None:
        self.side = side
        self.observed: int
        self.observed, segments = stored
        self.segments = set(segments)
        self._heads, self._chunks = name, name.upper()
        self._cut = slices
        self._retention_ms = retention_ms
        self._slices: dict[Place, Slice] = {}

    @property
    def stored(self) -> list[Any]:
        """Return the facts that are remembered besides the records."""
        return [self.observed, sorted(self.segments)]

    def load_heads(self, places: set[Place], store: Store) -> list[Place]:
        """Fetch slices: those that get records, and those that are looked into."""
        wanted = [place for place in places if self._segment(place) in self.segments]
        self._fetch(store, self._heads, [(place, _head(place)) for place in wanted])
        return wanted

    def load_chunks(self, wanted: Iterable[Place], probed: set[Place], store: Store) -> None:
        """Take those that are there; fetch the rest of those that are looked into."""
        for place in wanted:
            head = store.get(self._space(self._heads, place), _head(place))
            if head is not None:
                self._slices[place] = Slice(*head)
        seen = [(place, at) for place in probed if (at := self._slices.get(place)) is not None]
        chunks = [(place, key) for place, at in seen for key in _sealed(place, at)]
        self._fetch(store, self._chunks, chunks)

    def show(self, probed: set[Place], store: Store) -> None:
        """Lay out those that are looked into."""
        for place in probed:
            at = self._slices.get(place)
            if at is not None:
                space = self._space(self._chunks, place)
                at.show((store.get(space, key) for key in _sealed(place, at)), self.side)

    def find(self, key: bytes, first: int, last: int) -> Iterator[tuple[Slice, int, int]]:
        """Yield the slices of a key with records in that stretch which are not forgotten yet."""
        first = max(first, self.observed - self._retention_ms + 1)
        length = self._cut.length_ms
        for number in range(first // length, last // length + 1):
            at = self._slices.get((key, number))
            if at is not None and at.times is not None:
                yield at, first, last

    def add(self, key: bytes, time: int, row: Row) -> Slice | None:
        """Keep a record; None if it is too old to be found by any other."""
        self.observed = max(self.observed, time)
        if time <= self.observed - self._retention_ms:
            return None
        place = (key, time // self._cut.length_ms)
        at = self._slices.get(place)
        if at is None:
            at = self._slices[place] = Slice(0, False, [])
            at.show((), self.side)
            self.segments.add(self._segment(place))
        at.add(time, row, self.side.stored(row))
        return at

    def write(self, store: Store) -> None:
        """Put what has changed, forget the segments that nothing can be found in any more."""
        for place, at in self._slices.items():
            if at.changed:
                self._put(place, at, store)
        length = self._cut.length_ms * self._cut.per_segment
        horizon = self.observed - self._retention_ms + 1
        for segment in [each for each in self.segments if (each + 1) * length <= horizon]:
            self.segments.discard(segment)
            for kind in (self._heads, self._chunks):
                store.drop(kind + _SLICE.pack(segment))

    def _put(self, place: Place, at: Slice, store: Store) -> None:
        space = self._space(self._chunks, place)
        while len(at.fresh) >= CHUNK_RECORDS:
            store.put(space, _chunk(place, at.sealed), at.fresh[:CHUNK_RECORDS])
            del at.fresh[:CHUNK_RECORDS]
            at.sealed += 1
        head = [at.sealed, at.waits, at.fresh]
        store.put(self._space(self._heads, place), _head(place), head)

    def _fetch(self, store: Store, kind: bytes, wanted: list[tuple[Place, bytes]]) -> None:
        by_space: dict[bytes, list[bytes]] = {}
        for place, key in wanted:
            by_space.setdefault(self._space(kind, place), []).append(key)
        for space, some in by_space.items():
            store.load(space, some)

    def _segment(self, place: Place) -> int:
        return place[1] // self._cut.per_segment

    def _space(self, kind: bytes, place: Place) -> bytes:
        return kind + _SLICE.pack(self._segment(place))


def _time(record: list[Any]) -> int:
    time: int = record[0]
    return time


def _head(place: Place) -> bytes:
    return place[0] + _SLICE.pack(place[1])


def _chunk(place: Place, number: int) -> bytes:
    return place[0] + _CHUNK.pack(place[1], number)


def _sealed(place: Place, at: Slice) -> Iterator[bytes]:
    return (_chunk(place, number) for number in range(at.sealed))
