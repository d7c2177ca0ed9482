"""Stream-stream joins: each record meets those of the other side within the window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ksql.core import UNKNOWN_JOIN_STATE
from ksql.exec.operators import keys
from ksql.exec.operators.base import (
    KeyOrder,
    LateRecord,
    LogError,
    PausingProcessor,
    Record,
    Steps,
    Store,
)
from ksql.exec.operators.joining.join_buffer import (
    JoinBuffer,
    Line,
    SliceId,
    Slices,
    UnmatchedBuffer,
)
from ksql.exec.operators.joining.join_layout import Ending, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from ksql.core import Row

_META = b"m"
_JOIN = b"join"
_FORGOTTEN = "late record: those that it could meet are forgotten"
_VERSION = 1
_new = tuple.__new__


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
        buffer: JoinBuffer,
        waiting: UnmatchedBuffer | None,
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

    def met(self, key: bytes, times: Sequence[int]) -> None:
        """Let the records of these times, which have met another one, no longer wait."""
        if self.waiting is not None:
            for when in set(self.buffer.waiting(key, times)):
                self.waiting.forget(key, when)

    def reach(self, time: int) -> tuple[int, int]:
        """Return the times of the records that one of this side meets."""
        return max(0, time - self.earlier_ms), max(0, time + self.later_ms)


@dataclass(slots=True)
class _State:
    """Stream time and both sides during a call."""

    left: _End
    right: _End
    slices: Slices
    stream_time: int = -1


class Results(Protocol):
    """Takes what a join gives, in order."""

    def pairs(
        self, record: Record, row: Row, line: Line, start: int, end: int, *, is_left: bool
    ) -> None:
        """Take a record with each of those that it meets: a stretch of a line."""

    def alone(self, record: Record, key: bytes, time: int, row: Row, *, is_left: bool) -> None:
        """Take a row without match that ``record`` has brought out, perhaps its own."""


class _Records:
    """The results as records."""

    def __init__(self, left: Side, right: Side, ending: Ending) -> None:
        self.records: list[Record] = []
        self._left, self._right = left, right
        self._ending = ending

    def pairs(
        self, record: Record, row: Row, line: Line, start: int, end: int, *, is_left: bool
    ) -> None:
        """Join a record with each of those."""
        port, key, _, time, topic, partition, offset, headers, _, sequence_key, lane = record
        (times, rows), add, ending_of = line, self.records.append, self._ending.of
        for index in range(start, end):
            when, other = times[index], rows[index]
            later = time if time > when else when
            both = (*row, *other) if is_left else (*other, *row)
            whole = (*both, *ending_of(key, later))
            values = (
                port,
                key,
                whole,
                later,
                topic,
                partition,
                offset,
                headers,
                None,
                sequence_key,
                lane,
            )
            # the tuple's own constructor: a record may meet many
            add(_new(Record, values))

    def alone(self, record: Record, key: bytes, time: int, row: Row, *, is_left: bool) -> None:
        """Give the row NULLs for the other side."""
        sides = (*row, *self._right.nothing) if is_left else (*self._left.nothing, *row)
        whole = (*sides, *self._ending.of(key, time))
        self.records.append(record._replace(key=key, row=whole, timestamp=time))


@dataclass(frozen=True, slots=True)
class StreamJoinProcessor(PausingProcessor):
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

    @property
    def waits(self) -> bool:
        """Whether records without match wait in this join."""
        return (self.left_outer or self.right_outer) and not self.within.eager

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Join each record with those before it, then keep it."""
        out = _Records(self.left, self.right, self.ending)
        write = yield from self.into(out, records, store, log)
        write()
        return out.records

    def into(
        self, out: Results, records: Sequence[Record], store: Store, log: LogError
    ) -> Generator[None, None, Callable[[], None]]:
        """Do the same with the results going elsewhere; return what writes the state.

        Before that nothing of it has changed, if no records wait in this join.
        """
        store.load(_META, (_JOIN,))
        yield
        state = self._read(store)
        yield from self._load(records, state, store)
        self._join(records, state, out, log)
        return partial(self._write, state, store)

    def _join(self, records: Sequence[Record], state: _State, out: Results, log: LogError) -> None:
        port, waits, retention = self.right.port, self.waits, self.within.retention_ms
        left, right, pairs = state.left, state.right, out.pairs
        for record in records:
            row, time = record[2], record[3]
            if time > state.stream_time:
                state.stream_time = time
            if row is None:
                continue
            key, is_left = record[1], record[0] != port
            here, there = (left, right) if is_left else (right, left)
            if here.outer and keys.begins_with_null(key):
                out.alone(record, key, time, row, is_left=is_left)
                continue
            if waits and time == state.stream_time:
                self._close(record, state, out)
            buffer, matched = there.buffer, False
            line = buffer.lines.get(key)
            if line is not None:
                first, oldest = time - here.earlier_ms, buffer.observed - retention + 1
                start = bisect_left(line[0], first if first > oldest else oldest)
                end = bisect_right(line[0], time + here.later_ms, start)
                if start < end:
                    matched = True
                    if waits:
                        there.met(key, line[0][start:end])
                    pairs(record, row, line, start, end, is_left=is_left)
            kept = here.buffer.add(key, time, row)
            if not kept:
                behind_ms = state.stream_time - time
                log(
                    "join",
                    LateRecord.of(_FORGOTTEN, behind_ms, record.topic, record.partition),
                    row,
                )
            if here.outer and not matched:
                self._without_match(record, row, here, state, out, kept=kept)

    def _without_match(
        self, record: Record, row: Row, here: _End, state: _State, out: Results, *, kept: bool
    ) -> None:
        """Give out a record that has met nothing, or let it wait."""
        key, time = record.key, record.timestamp
        if here.waiting is None or here.reach(time)[1] < state.stream_time:
            out.alone(record, key, time, row, is_left=here.is_left)
            return
        if kept:
            here.buffer.wait(key, time)
        here.waiting.add(key, time, here.buffer.side.stored(row))

    def _close(self, record: Record, state: _State, out: Results) -> None:
        """Give out the records that nothing can match any more, by time, the right side's first."""
        due: list[tuple[int, bool, Any]] = []
        for end in (state.right, state.left):
            if end.waiting is None:
                continue
            limit = self._limit(end, state.stream_time)
            lowest = end.waiting.lowest
            if lowest is not None and lowest < limit:
                due += (
                    (unmatched.time, end.is_left, unmatched) for unmatched in end.waiting.due(limit)
                )
        due.sort(key=lambda entry: entry[:2])
        for time, is_left, unmatched in due:
            end = state.left if is_left else state.right
            for row in end.buffer.side.rows(unmatched.rows):
                out.alone(record, unmatched.key, time, row, is_left=is_left)

    def _limit(self, end: _End, stream_time: int) -> int:
        """Return the time before which records of a side can find no match any more."""
        return stream_time - end.later_ms - self.within.grace_ms

    # --- state

    def _read(self, store: Store) -> _State:
        stored = store.get(_META, _JOIN)
        within = self.within
        if stored is None:
            span = within.before_ms + within.after_ms
            slices = Slices.of(span, within.retention_ms)
            return self._state(store, slices, -1, [[-1, []], [-1, []]], [[], []])
        if stored[0] != _VERSION:
            raise UNKNOWN_JOIN_STATE(version=stored[0])
        _, stream_time, slices, buffers, waiting = stored
        return self._state(store, Slices(*slices), stream_time, buffers, waiting)

    def _state(
        self, store: Store, slices: Slices, stream_time: int, buffers: list[Any], waiting: list[Any]
    ) -> _State:
        within, retention = self.within, self.within.retention_ms
        ends = []
        for number, (name, side, outer, reach) in enumerate(
            (
                (b"l", self.left, self.left_outer, (within.before_ms, within.after_ms)),
                (b"r", self.right, self.right_outer, (within.after_ms, within.before_ms)),
            )
        ):
            buffer = JoinBuffer(name, side, slices, retention, buffers[number])
            waits = outer and not within.eager
            held = (
                UnmatchedBuffer(b"w" + name, store, waiting[number], self.order) if waits else None
            )
            ends.append(_End(buffer, held, reach, outer=outer, is_left=number == 0))
        left, right = ends
        return _State(left, right, slices, stream_time)

    def _load(self, records: Sequence[Record], state: _State, store: Store) -> Iterator[None]:
        left, right = state.left, state.right
        added, probed = self._places(records, state)
        newest = max((record.timestamp for record in records), default=-1)
        limits = [self._limit(end, max(newest, state.stream_time)) for end in (left, right)]
        for end, limit in zip((left, right), limits, strict=True):
            if end.waiting is not None:
                end.waiting.load_index(limit)
        needed = (
            left.buffer.load_heads(added[0] | probed[0], store),
            right.buffer.load_heads(added[1] | probed[1], store),
        )
        yield
        left.buffer.load_chunks(needed[0], probed[0], store)
        right.buffer.load_chunks(needed[1], probed[1], store)
        for end, limit in zip((left, right), limits, strict=True):
            if end.waiting is not None:
                end.waiting.load_due(limit)
        yield
        left.buffer.show(probed[0], store)
        right.buffer.show(probed[1], store)
        if self.waits:
            self._load_waiting(records, state)
            yield

    def _places(
        self, records: Sequence[Record], state: _State
    ) -> tuple[tuple[set[SliceId], set[SliceId]], tuple[set[SliceId], set[SliceId]]]:
        """Return the stored slices that records are added to, and those that are looked into."""
        left, right = state.left, state.right
        added: tuple[set[SliceId], set[SliceId]] = (set(), set())
        probed: tuple[set[SliceId], set[SliceId]] = (set(), set())
        length, port = state.slices.length_ms, self.right.port
        begins, ends = zip(left.buffer.stretch, right.buffer.stretch, strict=True)
        for record in records if any(ends) else ():
            key, time = record[1], record[3]
            here, own, other = (right, 1, 0) if record[0] == port else (left, 0, 1)
            if time < ends[own]:
                added[own].add((key, time // length))
            first, last = here.reach(time)
            if first < ends[other] and last >= begins[other]:
                # a slice is longer than what a record reaches: these are all
                probed[other].add((key, first // length))
                probed[other].add((key, last // length))
        return added, probed

    def _load_waiting(self, records: Iterable[Record], state: _State) -> None:
        """Fetch the records that may be found waiting, and the places where new ones may wait."""
        needed: dict[bool, set[tuple[bytes, int]]] = {True: set(), False: set()}
        port = self.right.port
        for record in records:
            key, time, is_left = record.key, record.timestamp, record.port != port
            here, there = (state.left, state.right) if is_left else (state.right, state.left)
            if here.waiting is not None:
                needed[is_left].add((key, time))
            if there.waiting is not None:
                times = there.buffer.between(key, *here.reach(time))
                matches = there.buffer.waiting(key, times)
                needed[not is_left].update((key, when) for when in matches)
        for end in (state.left, state.right):
            if end.waiting is not None:
                end.waiting.load(needed[end.is_left])

    @staticmethod
    def _write(state: _State, store: Store) -> None:
        ends = (state.left, state.right)
        for end in ends:
            end.buffer.write(store)
            if end.waiting is not None:
                end.waiting.write()
        waiting = [[] if end.waiting is None else end.waiting.stored for end in ends]
        slicing = [state.slices.length_ms, state.slices.per_segment]
        buffers = [end.buffer.stored for end in ends]
        store.put(_META, _JOIN, [_VERSION, state.stream_time, slicing, buffers, waiting])
