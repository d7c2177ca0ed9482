"""The records of one side of a stream-stream join: all by key and time, and the unmatched.

A key's records lie in slices of time about as long as the join's window. So a record looks into one
or two of them. A slice has a head with its newest records. When these are many they are sealed as a
chunk, which is never written again. So a busy key costs what its new records cost. Slices are
forgotten by segment, all keys at once.

Records without a match are found by key and time, to be forgotten when a match comes. They are
found by time, to be emitted when no match can come any more. The second way is an index in chunks;
what was matched meanwhile stays in it until its time comes.

Source: the outer join store of Kafka Streams' stream-stream join.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ksql.core import Row
    from ksql.exec.operators.base import KeyOrder, Store
    from ksql.exec.operators.joining.join_layout import Side


CHUNK_RECORDS = 64
SliceId = tuple[bytes, int]
"""A packed key and the number of a slice."""
Line = tuple[list[int], list["Row"]]
"""Times and rows of records, by time."""
_NOTHING: Line = [], []
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
    """One key's records of a slice: so many sealed chunks, and the newest ones."""

    __slots__ = ("changed", "fresh", "sealed")

    def __init__(self, sealed: int, fresh: list[Any]) -> None:
        self.sealed = sealed
        self.fresh = fresh
        self.changed = False


class JoinBuffer:
    """The records of a side during one call.

    ``observed`` is the highest time among its records, ``segments`` those that have any. Records
    older than ``retention_ms`` before that time are not found any more, kept or not. ``lines`` has
    the times and the rows of each key's records, by time, those of one time in the order in which
    they came. It has all records of the slices that are looked into. ``waits`` are the slices of
    which some may be waiting for a first match.
    """

    def __init__(
        self, name: bytes, side: Side, slices: Slices, retention_ms: int, stored: list[Any]
    ) -> None:
        self.side = side
        self.observed: int
        self.observed, segments = stored
        self.segments = set(segments)
        self.lines: dict[bytes, Line] = {}
        self.waits: set[SliceId] = set()
        self._heads, self._chunks = name, name.upper()
        self._cut = slices
        self._retention_ms = retention_ms
        self._slices: dict[SliceId, Slice] = {}
        self._added: list[tuple[bytes, int, Row]] = []

    @property
    def stored(self) -> list[Any]:
        """Return the facts that are remembered besides the records."""
        return [self.observed, sorted(self.segments)]

    @property
    def stretch(self) -> tuple[int, int]:
        """The times of the segments that are stored, the end excluded."""
        if not self.segments:
            return 0, 0
        length = self._cut.length_ms * self._cut.per_segment
        return min(self.segments) * length, (max(self.segments) + 1) * length

    def load_heads(self, places: set[SliceId], store: Store) -> list[SliceId]:
        """Fetch slices: those that get records, and those that are looked into."""
        held = [slice_ for slice_ in places if self._segment(slice_) in self.segments]
        self._fetch(store, self._heads, [(slice_, _head(slice_)) for slice_ in held])
        return held

    def load_chunks(self, slices: Iterable[SliceId], probed: set[SliceId], store: Store) -> None:
        """Take those that are there; fetch the rest of those that are looked into."""
        for slice_ in slices:
            head = store.get(self._space(self._heads, slice_), _head(slice_))
            if head is not None:
                self._slices[slice_] = Slice(head[0], head[2])
                if head[1]:
                    self.waits.add(slice_)
        seen = [slice_ for slice_ in probed if slice_ in self._slices]
        chunks = [(slice_, key) for slice_ in seen for key in _sealed(slice_, self._slices[slice_])]
        self._fetch(store, self._chunks, chunks)

    def show(self, probed: set[SliceId], store: Store) -> None:
        """Lay out those that are looked into."""
        for slice_ in sorted(slice_ for slice_ in probed if slice_ in self._slices):
            at, space = self._slices[slice_], self._space(self._chunks, slice_)
            records = [record for key in _sealed(slice_, at) for record in store.get(space, key)]
            records += at.fresh
            records.sort(key=_time)
            times, rows = self.lines.setdefault(slice_[0], ([], []))
            times += [time for time, _ in records]
            rows += self.side.rows(stored for _, stored in records)

    def between(self, key: bytes, first: int, last: int) -> Sequence[int]:
        """Return the times of a key's records found so far in that stretch, both ends included."""
        times, _ = self.lines.get(key) or _NOTHING
        first = max(first, self.observed - self._retention_ms + 1)
        return times[bisect_left(times, first) : bisect_right(times, last)]

    def waiting(self, key: bytes, times: Iterable[int]) -> Iterator[int]:
        """Return those of a key's times at which a record may be waiting for a first match."""
        length = self._cut.length_ms
        return (time for time in times if (key, time // length) in self.waits)

    def add(self, key: bytes, time: int, row: Row) -> bool:
        """Keep a record; False if it is too old to be found by any other."""
        if time > self.observed:
            self.observed = time
        if time <= self.observed - self._retention_ms:
            return False
        self._added.append((key, time, row))
        line = self.lines.get(key)
        if line is None:
            self.lines[key] = [time], [row]
            return True
        times, rows = line
        if not times or times[-1] <= time:
            times.append(time)
            rows.append(row)
        else:
            index = bisect_right(times, time)
            times.insert(index, time)
            rows.insert(index, row)
        return True

    def wait(self, key: bytes, time: int) -> None:
        """Take note that a record that was added waits."""
        self.waits.add((key, time // self._cut.length_ms))

    def write(self, store: Store) -> None:
        """Put what was added, forget the segments that nothing can be found in any more.

        What cannot be found any more is not put at all.
        """
        length, per_segment = self._cut.length_ms, self._cut.per_segment
        horizon = self.observed - self._retention_ms + 1
        kept = horizon // (length * per_segment)  # the first segment that ends after the horizon
        stored = self.side.stored
        for key, time, row in self._added:
            if time < horizon:
                continue
            number = time // length
            at = self._slices.get((key, number))
            if at is None:
                at = self._slices[key, number] = Slice(0, [])
                self.segments.add(number // per_segment)
            at.fresh.append([time, stored(row)])
            at.changed = True
        self._added.clear()
        for slice_, at in self._slices.items():
            if at.changed:
                self._put(slice_, at, store)
        for segment in [segment for segment in self.segments if segment < kept]:
            self.segments.discard(segment)
            for kind in (self._heads, self._chunks):
                store.drop(kind + _SLICE.pack(segment))

    def _put(self, slice_: SliceId, at: Slice, store: Store) -> None:
        space = self._space(self._chunks, slice_)
        while len(at.fresh) >= CHUNK_RECORDS:
            store.put(space, _chunk(slice_, at.sealed), at.fresh[:CHUNK_RECORDS])
            del at.fresh[:CHUNK_RECORDS]
            at.sealed += 1
        head = [at.sealed, slice_ in self.waits, at.fresh]
        store.put(self._space(self._heads, slice_), _head(slice_), head)

    def _fetch(self, store: Store, kind: bytes, names: list[tuple[SliceId, bytes]]) -> None:
        by_space: dict[bytes, list[bytes]] = {}
        for slice_, key in names:
            by_space.setdefault(self._space(kind, slice_), []).append(key)
        for space, some in by_space.items():
            store.load(space, some)

    def _segment(self, slice_: SliceId) -> int:
        return slice_[1] // self._cut.per_segment

    def _space(self, kind: bytes, slice_: SliceId) -> bytes:
        return kind + _SLICE.pack(self._segment(slice_))


def _time(record: list[Any]) -> int:
    time: int = record[0]
    return time


def _head(slice_: SliceId) -> bytes:
    return slice_[0] + _SLICE.pack(slice_[1])


def _chunk(slice_: SliceId, number: int) -> bytes:
    return slice_[0] + _CHUNK.pack(slice_[1], number)


def _sealed(slice_: SliceId, at: Slice) -> Iterator[bytes]:
    return (_chunk(slice_, number) for number in range(at.sealed))


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
