"""A stream joined with a stream: each record meets those of the other side near in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.base.errors import ServerError
from ksql.processors import keys
from ksql.processors.base import KeyOrder, Paused, Record
from ksql.processors.buffer import Buffer, Place, Slices
from ksql.processors.sides import Ending, Side
from ksql.processors.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.base.records import Row
    from ksql.processors.base import LogError, Steps, Store

_META = b"m"
_JOIN = b"join"
_VERSION = 1
_new = tuple.__new__


class UnknownJoinState(ServerError):
    """The buffers of a join that a newer version of this software has written."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"the state of a join has format {version}, which this version does not know",
            hint="Run the version that wrote it, or a newer one.",
        )


@dataclass(frozen=True, slots=True)
class Within:
    """How much earlier and later than a left record the right one may be, and how late records are.

    ``eager``: a record that finds no match is given out without one at once, even if a match comes
    later. Else that waits until no match can come any more.
    """

    before_ms: int
    after_ms: int
    grace_ms: int
    eager: bool

    @property
    def retention_ms(self) -> int:
        """How long records can be met."""
        return self.before_ms + self.after_ms + self.grace_ms


class _End:
    """One side during a call: what it looks for on the other one, and what it keeps."""

    __slots__ = ("buffer", "earlier_ms", "is_left", "later_ms", "outer", "waiting")

    def __init__(
        self,
        buffer: Buffer,
        waiting: Waiting | None,
        reach: tuple[int, int],
        *,
        outer: bool,
        is_left: bool,
    ) -> None:
        self.buffer = buffer
        self.waiting = waiting
        self.earlier_ms, self.later_ms = reach
        self.outer = outer
        self.is_left = is_left

    def reach(self, time: int) -> tuple[int, int]:
        """The times of the records that one of this side meets."""
        return max(0, time - self.earlier_ms), max(0, time + self.later_ms)


@dataclass(slots=True)
class _State:
    """Stream time and both sides during a call."""

    left: _End
    right: _End
    slices: Slices
    stream_time: int = -1

    @property
    def waits(self) -> bool:
        """Whether records without match wait at all in this join."""
        return self.left.waiting is not None or self.right.waiting is not None


@dataclass(frozen=True, slots=True)
class StreamJoinProcessor(Paused):
    """Out comes the left row, then the right one, then the ending.

    A result has the higher of both times; one without a match has its record's. Records without
    match are kept on the sides that are ``outer``; those of one time leave in the ``order`` of
    keys. A NULL key never meets another one. A record without row has only its time, which the
    stream has reached.

    Source: Kafka Streams' KStreamKStreamJoin; docs/sql/joins.md#stream-with-stream.
    """

    left: Side
    right: Side
    left_outer: bool
    right_outer: bool
    within: Within
    ending: Ending
    order: KeyOrder = bytes

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Join each record with those before it, then keep it."""
        store.load(_META, (_JOIN,))
        yield
        state = self._read(store)
        yield from self._load(records, state, store)
        return self._joined(records, state, store, log)

    def _joined(
        self, records: Sequence[Record], state: _State, store: Store, log: LogError
    ) -> list[Record]:
        port = self.right.port
        out: list[Record] = []
        for record in records:
            state.stream_time = max(state.stream_time, record.timestamp)
            if record.row is None:
                continue
            here, there = state.left, state.right
            if record.port == port:
                here, there = there, here
            self._meet(record, record.row, here, there, state, out, log)
        self._write(state, store)
        return out

    def _meet(
        self,
        record: Record,
        row: Row,
        here: _End,
        there: _End,
        state: _State,
        out: list[Record],
        log: LogError,
    ) -> None:
        key, time = record.key, record.timestamp
        if here.outer and keys.begins_with_null(key):
            out.append(self._alone(record, key, time, row, here))
            return
        if state.waits and time == state.stream_time:
            out += self._closed(record, state)
        first, last = here.reach(time)
        found = False
        for at, start, end in there.buffer.find(key, first, last):
            if at.waits and there.waiting is not None:
                for when in set(at.between(start, end)[0]):
                    there.waiting.forget(key, when)
            found = self._pairs(record, row, here, at.between(start, end), out) or found
        kept = here.buffer.add(key, time, row)
        if kept is None:
            log("join", "late record: those that it could meet are forgotten", row)
        if not here.outer or found:
            return
        if here.waiting is None or last < state.stream_time:
            out.append(self._alone(record, key, time, row, here))
        else:
            if kept is not None:
                kept.waits = True
            here.waiting.add(key, time, here.buffer.side.stored(row))

    def _pairs(
        self,
        record: Record,
        row: Row,
        here: _End,
        others: tuple[list[int], list[Row]],
        out: list[Record],
    ) -> bool:
        """Join a record with each of those; whether there were any."""
        port, key, _, time, topic, partition, offset, headers, _, turn, lane = record
        ending_of, is_left = self.ending.of, here.is_left
        for when, other in zip(*others, strict=True):
            later = time if time > when else when
            ending = ending_of(key, later)
            whole = (*row, *other, *ending) if is_left else (*other, *row, *ending)
            values = (port, key, whole, later, topic, partition, offset, headers, None, turn, lane)
            # the tuple's own constructor: a record may meet many
            out.append(_new(Record, values))
        return bool(others[0])

    def _closed(self, record: Record, state: _State) -> Iterator[Record]:
        """Take out the records that nothing can match any more, by time, the right side's first."""
        due: list[tuple[int, bool, Any]] = []
        for end in (state.right, state.left):
            if end.waiting is None:
                continue
            limit = self._limit(end, state.stream_time)
            lowest = end.waiting.lowest
            if lowest is not None and lowest < limit:
                due += ((each.time, end.is_left, each) for each in end.waiting.due(limit))
        due.sort(key=lambda each: each[:2])
        for time, is_left, each in due:
            end = state.left if is_left else state.right
            for stored in each.rows:
                row = end.buffer.side.row(stored)
                yield self._alone(record, each.key, time, row, end)

    def _limit(self, end: _End, stream_time: int) -> int:
        """The time before which records of a side can find no match any more."""
        return stream_time - end.later_ms - self.within.grace_ms

    def _alone(self, record: Record, key: bytes, time: int, row: Row, end: _End) -> Record:
        sides = (*row, *self.right.nothing) if end.is_left else (*self.left.nothing, *row)
        whole = (*sides, *self.ending.of(key, time))
        return record._replace(key=key, row=whole, timestamp=time)

    # --- state

    def _read(self, store: Store) -> _State:
        stored = store.get(_META, _JOIN)
        within = self.within
        if stored is None:
            span = within.before_ms + within.after_ms
            cut = Slices.of(span, within.retention_ms)
            return self._state(store, cut, -1, [[-1, []], [-1, []]], [[], []])
        if stored[0] != _VERSION:
            raise UnknownJoinState(stored[0])
        _, stream_time, slices, buffers, waiting = stored
        return self._state(store, Slices(*slices), stream_time, buffers, waiting)

    def _state(
        self, store: Store, cut: Slices, stream_time: int, buffers: list[Any], waiting: list[Any]
    ) -> _State:
        within, retention = self.within, self.within.retention_ms
        ends = []
        for number, (name, side, outer, reach) in enumerate(
            (
                (b"l", self.left, self.left_outer, (within.before_ms, within.after_ms)),
                (b"r", self.right, self.right_outer, (within.after_ms, within.before_ms)),
            )
        ):
            buffer = Buffer(name, side, cut, retention, buffers[number])
            waits = outer and not within.eager
            held = Waiting(b"w" + name, store, waiting[number], self.order) if waits else None
            ends.append(_End(buffer, held, reach, outer=outer, is_left=number == 0))
        left, right = ends
        return _State(left, right, cut, stream_time)

    def _load(self, records: Sequence[Record], state: _State, store: Store) -> Iterator[None]:
        left, right = state.left, state.right
        added: tuple[set[Place], set[Place]] = (set(), set())
        probed: tuple[set[Place], set[Place]] = (set(), set())
        length, port = state.slices.length_ms, self.right.port
        for record in records:
            key, time = record.key, record.timestamp
            here, other = (right, 0) if record.port == port else (left, 1)
            added[1 - other].add((key, time // length))
            first, last = here.reach(time)
            # a slice is longer than what a record reaches: these are all
            probed[other].add((key, first // length))
            probed[other].add((key, last // length))
        newest = max((record.timestamp for record in records), default=-1)
        limits = [self._limit(end, max(newest, state.stream_time)) for end in (left, right)]
        for end, limit in zip((left, right), limits, strict=True):
            if end.waiting is not None:
                end.waiting.load_index(limit)
        wanted = (
            left.buffer.load_heads(added[0] | probed[0], store),
            right.buffer.load_heads(added[1] | probed[1], store),
        )
        yield
        left.buffer.load_chunks(wanted[0], probed[0], store)
        right.buffer.load_chunks(wanted[1], probed[1], store)
        for end, limit in zip((left, right), limits, strict=True):
            if end.waiting is not None:
                end.waiting.load_due(limit)
        yield
        left.buffer.show(probed[0], store)
        right.buffer.show(probed[1], store)
        if state.waits:
            self._load_waiting(records, state)
            yield

    def _load_waiting(self, records: Iterable[Record], state: _State) -> None:
        """Fetch the records that may be found waiting, and the places where new ones may wait."""
        wanted: dict[bool, set[tuple[bytes, int]]] = {True: set(), False: set()}
        port = self.right.port
        for record in records:
            key, time, is_left = record.key, record.timestamp, record.port != port
            here, there = (state.left, state.right) if is_left else (state.right, state.left)
            if here.waiting is not None:
                wanted[is_left].add((key, time))
            if there.waiting is not None:
                for at, first, last in there.buffer.find(key, *here.reach(time)):
                    if at.waits:
                        times, _ = at.between(first, last)
                        wanted[not is_left].update((key, when) for when in times)
        for end in (state.left, state.right):
            if end.waiting is not None:
                end.waiting.load(wanted[end.is_left])

    @staticmethod
    def _write(state: _State, store: Store) -> None:
        ends = (state.left, state.right)
        for end in ends:
            end.buffer.write(store)
            if end.waiting is not None:
                end.waiting.write()
        waiting = [[] if end.waiting is None else end.waiting.stored for end in ends]
        cut = [state.slices.length_ms, state.slices.per_segment]
        buffers = [end.buffer.stored for end in ends]
        store.put(_META, _JOIN, [_VERSION, state.stream_time, cut, buffers, waiting])
