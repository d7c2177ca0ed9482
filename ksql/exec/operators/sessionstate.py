"""The state of sessions: of each group, by slices of time.

A slice is a space; under the group's key it holds those of its sessions that end in the slice's
time: ``[[start, end, state], ..]``. So a record reads the slices from its own time on, one or two
unless it is late. Old sessions are forgotten with their slice, without a look at the groups.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ksql.core import Row
from ksql.exec.operators import keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.exec.operators.base import Store
    from ksql.exec.operators.folds import State

_META = b"m"
_CLOCK = b"sessions"
_SPACE = struct.Struct(">cq")
_SLICE_GAPS = 16
_MOST_SLICES = 128
_LEAST_SEGMENT_MS = 60_000
_end = attrgetter("end")


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions end ``gap_ms`` after their last record; both of their bounds belong to them."""

    gap_ms: int
    grace_ms: int
    retention_ms: int

    @property
    def slice_ms(self) -> int:
        """How much time a space covers: a group has few sessions in it, and spaces are few."""
        return max(_SLICE_GAPS * self.gap_ms, self.retention_ms // _MOST_SLICES, 1)

    def live_from(self, latest_end: int) -> int:
        """Return the time from which on the ends of sessions lie that records can still join."""
        return latest_end - self.retention_ms + 1

    def is_passed(self, number: int, time: int) -> bool:
        """Return whether all sessions of a slice end before that time."""
        return (number + 1) * self.slice_ms <= time


class Session:
    """A session; ``state`` is None until it is needed, ``stored`` is what the store has."""

    __slots__ = ("end", "start", "state", "stored")

    def __init__(self, start: int, end: int, state: State | None, stored: Any = None) -> None:
        self.start = start
        self.end = end
        self.state = state
        self.stored = stored

    def plain(self, generation_mark: bytes | None) -> list[Any]:
        """Return it as it is stored."""
        state = self.state
        if state is None:
            return [self.start, self.end, self.stored]
        return [
            self.start,
            self.end,
            state if generation_mark is None else [generation_mark, *state],
        ]


@dataclass(slots=True)
class SessionGroup:
    """The sessions of a group that a call may meet, in order; ``changed`` are slices to write."""

    key: bytes
    values: Row
    sessions: list[Session]
    changed: set[int] = field(default_factory=set)

    def near(self, time: int, gap_ms: int, live_from: int) -> slice:
        """Return which sessions a record of that time joins.

        Those that end too early are forgotten.
        """
        sessions, earliest = self.sessions, max(time - gap_ms, live_from)
        if not sessions or sessions[-1].end < earliest:
            return slice(len(sessions), len(sessions))
        low = bisect_left(sessions, earliest, key=_end)
        high, latest = low, time + gap_ms
        while high < len(sessions) and sessions[high].start <= latest:
            high += 1
        return slice(low, high)

    def of(self, start: int, end: int) -> Session:
        """Return the session with those bounds."""
        first = bisect_left(self.sessions, end, key=_end)
        return next(session for session in self.sessions[first:] if session.start == start)


class Bucket:
    """The sessions of one bucket during a call, and its stream time.

    ``stream_time`` is the highest timestamp seen, ``latest_end`` the latest end of a session that
    was kept: it decides what is forgotten.
    """

    def __init__(
        self,
        store: Store,
        windows: SessionWindows,
        stream_time: int,
        latest_end: int,
        slices: Sequence[int],
        *,
        by_segment: bool,
    ) -> None:
        self._store = store
        self._windows = windows
        self._by_segment = by_segment
        self._length = windows.slice_ms
        self._slices = set(slices)
        self._sorted = sorted(slices)
        self._earliest: Mapping[bytes, int] = {}
        self._groups: dict[bytes, SessionGroup] = {}
        self.stream_time = stream_time
        self.latest_end = latest_end

    @staticmethod
    def load_clock(store: Store) -> None:
        """Fetch what ``read`` needs."""
        store.load(_META, (_CLOCK,))

    @classmethod
    def read(cls, store: Store, windows: SessionWindows, *, by_segment: bool = False) -> Bucket:
        """Continue where the last call ended.

        ``by_segment``: sessions that are not found any more stay until their segment has passed.
        """
        return cls(store, windows, *_clock(store), by_segment=by_segment)

    @property
    def live_from(self) -> int:
        """Sessions that end before this time are not found any more."""
        return self._windows.live_from(self.latest_end)

    @property
    def kept_from(self) -> int:
        """Sessions that end before this time are not there any more."""
        if not self._by_segment:
            return self.live_from
        length = max(self._windows.retention_ms // 2, _LEAST_SEGMENT_MS)
        return (self.latest_end - self._windows.retention_ms) // length * length

    @property
    def open_ms(self) -> int:
        """How long a session stays open after its end."""
        return self._windows.grace_ms + self._windows.gap_ms

    @property
    def close_time(self) -> int:
        """Sessions that end before this time are closed."""
        return self.stream_time - self.open_ms

    def advance(self, timestamp: int) -> None:
        """See a record's timestamp."""
        if timestamp > self.stream_time:
            self.stream_time = timestamp

    def load(self, earliest: Mapping[bytes, int]) -> None:
        """Fetch each group's sessions that end at its time or later."""
        self._earliest = earliest
        starting: dict[int, list[bytes]] = {}
        for key, time in earliest.items():
            starting.setdefault(time // self._length, []).append(key)
        waiting = sorted(starting.items(), reverse=True)
        due_keys: set[bytes] = set()
        for number in self._sorted:
            while waiting and waiting[-1][0] <= number:
                due_keys.update(waiting.pop()[1])
            if due_keys:
                self._store.load(_space(number), due_keys)

    def group(self, key: bytes) -> SessionGroup:
        """Return the group of a key that was loaded."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = SessionGroup(
                key, tuple(keys.unpack(key)), self._stored(key)
            )
        return group

    def _stored(self, key: bytes) -> list[Session]:
        first = self._earliest[key] // self._length
        sessions: list[Session] = []
        for number in self._sorted[bisect_left(self._sorted, first) :]:
            entry = self._store.get(_space(number), key)
            if entry is not None:
                sessions += [Session(start, end, None, stored) for start, end, stored in entry]
        return sessions

    def replace(self, group: SessionGroup, span: slice, session: Session) -> None:
        """Put the session where those at the place were.

        One that is not found any more may be there with the same bounds: it takes its place, too.
        """
        sessions, first, end = group.sessions, span.start - 1, session.end
        if first >= 0 and end == sessions[first].end and session.start == sessions[first].start:
            span = slice(first, span.stop)
        length, changed = self._length, group.changed
        for gone in sessions[span]:
            changed.add(gone.end // length)
        changed.add(end // length)
        sessions[span] = (session,)
        if end > self.latest_end:
            self.latest_end = end

    def write(self, generation_mark: bytes | None) -> None:
        """Store what has changed, and forget the slices that no record can reach any more."""
        for group in self._groups.values():
            for number in group.changed:
                self._write_slice(group, number, generation_mark)
        passed = self._windows.is_passed
        reach = [number for number in self._slices if not passed(number, self.kept_from)]
        for number in self._slices.difference(reach):
            self._store.drop(_space(number))
        self._store.put(_META, _CLOCK, [self.stream_time, self.latest_end, sorted(reach)])

    def _write_slice(self, group: SessionGroup, number: int, generation_mark: bytes | None) -> None:
        low = number * self._length
        first = bisect_left(group.sessions, low, key=_end)
        last = bisect_left(group.sessions, low + self._length, key=_end)
        entry = [session.plain(generation_mark) for session in group.sessions[first:last]]
        if entry:
            self._slices.add(number)
            self._store.put(_space(number), group.key, entry)
        else:
            self._store.delete(_space(number), group.key)


def latest_end(*stores: Store) -> int:
    """Return the latest end of a session that one of the states has kept; -1 without any."""
    ends: list[int] = [_clock(store)[1] for store in stores]
    return max(ends)


def reachable_sessions(
    store: Store, windows: SessionWindows, latest_end: int
) -> Iterator[tuple[bytes, Session]]:
    """Yield the sessions that a state would still hold at that time, with their groups' keys."""
    _, _, slices = _clock(store)
    for number in slices:
        if windows.is_passed(number, windows.live_from(latest_end)):
            continue
        for key, entry in store.scan(_space(number)):
            for start, end, stored in entry:
                yield key, Session(start, end, None, stored)


def rewrite(
    store: Store,
    windows: SessionWindows,
    sessions: Mapping[bytes, Sequence[Session]],
    generation_mark: bytes | None,
    other: Store,
) -> None:
    """Let a state hold just these sessions; its time is the later one of both states."""
    time, _, slices = _clock(store)
    for number in slices:
        store.drop(_space(number))
    by_slice: dict[int, dict[bytes, list[Any]]] = {}
    for key, group in sessions.items():
        for session in sorted(group, key=_end):
            entries = by_slice.setdefault(session.end // windows.slice_ms, {})
            entries.setdefault(key, []).append(session.plain(generation_mark))
    for number, entries in by_slice.items():
        store.put_all(_space(number), entries)
    times = [max(time, _clock(other)[0]), latest_end(store, other)]
    store.put(_META, _CLOCK, [*times, sorted(by_slice)])


def _clock(store: Store) -> Sequence[Any]:
    stored = store.get(_META, _CLOCK)
    return (-1, -1, []) if stored is None else stored


def _space(number: int) -> bytes:
    return _SPACE.pack(b"s", number)
