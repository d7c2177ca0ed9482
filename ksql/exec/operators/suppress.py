"""EMIT FINAL: each window or session once, when it has closed.

A window closes when stream time reaches its end plus grace. The record that closes windows emits
the results of all of them. The earliest window comes first; within a window the order is that of
the groups' keys. Windows that begin longer before the latest one than RETENTION are forgotten by
then: they are logged instead. Source: Kafka Streams' ``EmitStrategy.onWindowClose`` (KIP-825).

EMIT FINAL over SESSION windows emits each session once, when no record can join it in time any
more.

A session closes when stream time has passed its end by more than gap and grace. With the record
that brings that about leave all sessions that have closed, by their ends, their starts and the
order of the groups' keys. Sessions that end longer before the latest one than RETENTION may be
forgotten by then, whole segments of time at once: they are logged instead.
Source: Kafka Streams' ``EmitStrategy.onWindowClose`` (KIP-825).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ksql.core.types import WindowedKeys, session_key, window_key
from ksql.exec.operators import keys
from ksql.exec.operators.base import KeyOrder, LogError, PausingProcessor, Record, Steps, Store
from ksql.exec.operators.folds import Folds, State, log_failure, stepped
from ksql.exec.operators.panes import log_late, logged_rows
from ksql.exec.operators.timers import Timers
from ksql.exec.operators.windows import Clock, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.core import Row
    from ksql.exec.operators.sessionstate import Bucket, Session, SessionGroup


FORGOTTEN = "forgotten before it was emitted, as stream time went beyond its RETENTION"
_META = b"m"
_FINAL = b"final"
_START = struct.Struct(">q")
_SUFFIX_BYTES = _START.size


@dataclass(frozen=True, slots=True)
class FinalProcessor(PausingProcessor):
    """The stateful operator; rows in and out are those of ``aggregate``."""

    folds: Folds
    windows: Windows
    order: KeyOrder

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Fold the records into their windows; emit those that close."""
        Clock.load(store)
        Timers.load(store)
        store.load(_META, (_FINAL,))
        yield
        call = _Call.read(self, store, log)
        newest = max((record.timestamp for record in records), default=-1)
        limit = self.windows.last_closed(max(newest, call.clock.stream_time))
        call.due.load_upto(limit)
        yield
        call.load(records, limit)
        yield
        return self._emitted(records, call)

    def _emitted(self, records: Sequence[Record], call: _Call) -> Iterator[Record]:
        windows = self.windows
        for record in records:
            call.clock.advance(record.timestamp)
            for start in windows.starts(record.timestamp):
                call.take(record, start)
            yield from call.closed(record)
        call.write()


@dataclass(slots=True)
class _Window:
    """A window of a group; ``stored`` if the store has it."""

    state: State
    stored: bool
    changed: bool = False


@dataclass(slots=True)
class _Call:
    """The windows of one bucket during a call.

    ``latest`` is the start of the latest window that was kept, ``emitted`` of the latest one that
    has closed: those do not open again. ``waiting`` are the windows that may close in this call.
    """

    processor: FinalProcessor
    store: Store
    log: LogError
    clock: Clock
    due: Timers
    latest: int
    emitted: int
    limit: int = -1
    waiting: list[tuple[int, bytes]] = field(default_factory=list)
    open: dict[bytes, _Window] = field(default_factory=dict)

    @classmethod
    def read(cls, processor: FinalProcessor, store: Store, log: LogError) -> _Call:
        windows = processor.windows
        clock = Clock.read(store, windows)
        open_ms = windows.size_ms + windows.grace_ms
        due = Timers.read(store, windows.advance_ms, open_ms)
        stored = store.get(_META, _FINAL)
        return cls(processor, store, log, clock, due, *([-1, -1] if stored is None else stored))

    def load(self, records: Sequence[Record], limit: int) -> None:
        """Fetch the windows of the records and those that close, up to the one at the limit."""
        self.limit = limit
        needed: dict[bytes, set[bytes]] = {}
        for key in self.due.upto(limit):
            (start,) = _START.unpack(key[-_SUFFIX_BYTES:])
            if start <= limit:
                self.waiting.append((start, key))
                needed.setdefault(self.clock.space(start), set()).add(key)
        heapify(self.waiting)
        for record in records:
            for start in self.processor.windows.starts(record.timestamp):
                if not self._is_late(start):
                    key = window_key(record.key, start)
                    needed.setdefault(self.clock.space(start), set()).add(key)
        for space, some in needed.items():
            self.store.load(space, some)

    def take(self, record: Record, start: int) -> None:
        """Fold a record into a window."""
        if self._is_late(start):
            windows, stream_time = self.processor.windows, self.clock.stream_time
            last = max(self.emitted, windows.last_closed(stream_time))
            starts = windows.starts(record.timestamp)
            log_late(record, start, starts, last, stream_time, self.log)
            return
        key = window_key(record.key, start)
        window = self._window(key, start)
        if not self._folded(record, window.state):
            return
        if not window.stored and not window.changed and start <= self.limit:
            heappush(self.waiting, (start, key))
        window.changed = True
        self.latest = max(self.latest, start)

    def _folded(self, record: Record, state: State) -> bool:
        folds = self.processor.folds
        if record.old is None:
            return stepped(folds, record, state, self.log)
        assert folds.merge is not None  # noqa: S101 - what stands for several records can merge
        folds.merge(state, record.old)
        return True

    def _is_late(self, start: int) -> bool:
        return start <= self.emitted or self.clock.is_late(start)

    def _window(self, key: bytes, start: int) -> _Window:
        window = self.open.get(key)
        if window is None:
            folds, stored = self.processor.folds, self.store.get(self.clock.space(start), key)
            state = folds.init() if stored is None else folds.complete(stored)
            window = self.open[key] = _Window(state, stored is not None)
        return window

    def closed(self, record: Record) -> Iterator[Record]:
        """Return the results of the windows that have closed with that record."""
        last = self.processor.windows.last_closed(self.clock.stream_time)
        if last <= self.emitted:
            return
        self.emitted = last
        order, closed = self.processor.order, []
        while self.waiting and self.waiting[0][0] <= last:
            start, key = heappop(self.waiting)
            closed.append((start, order(key[:-_SUFFIX_BYTES]), key))
        oldest = self.latest - self.processor.windows.retention_ms
        for start in sorted({start for start, _, _ in closed if start < oldest}):
            shown = next(iter(logged_rows(record)))
            self.log("aggregate", f"{FORGOTTEN}: the window starting at {start}", shown)
        for start, _, key in sorted(closed):
            window = self._window(key, start)
            if start >= oldest and (row := self._row(key, start, window.state)) is not None:
                yield record._replace(
                    key=key[:-_SUFFIX_BYTES], row=row, timestamp=window.state[0], old=None
                )
            self._forget(key, start, window)

    def _row(self, key: bytes, start: int, state: State) -> Row | None:
        """Return the row of a window; None, and logged, if a function fails."""
        group = keys.unpack(key[:-_SUFFIX_BYTES])
        bounds = (start, start + self.processor.windows.size_ms)
        try:
            results = self.processor.folds.result(state)
        except Exception as error:  # noqa: BLE001 - any failure of a function leaves the row out
            log_failure(error, self.log, (*group, *bounds))
            return None
        return (*group, *results, state[0], *bounds)

    def _forget(self, key: bytes, start: int, window: _Window) -> None:
        if window.stored:
            self.store.delete(self.clock.space(start), key)
            self.due.remove(start, key)
        del self.open[key]

    def write(self) -> None:
        """Store the windows that have changed and are still open."""
        generation_mark = self.processor.folds.generation_mark
        for key, window in self.open.items():
            if not window.changed:
                continue
            (start,) = _START.unpack(key[-_SUFFIX_BYTES:])
            state = window.state if generation_mark is None else [generation_mark, *window.state]
            self.store.put(self.clock.space(start), key, state)
            if not window.stored:
                self.due.add(start, key)
        self.due.write(self.emitted + 1)
        self.clock.write(self.store)
        self.store.put(_META, _FINAL, [self.latest, self.emitted])


_KEYS = WindowedKeys(None)


class ClosingSessions:
    """The sessions of one bucket that wait for their close, for one call.

    ``new`` are those that the store does not have; ``waiting`` may close in this call.
    """

    def __init__(
        self,
        bucket: Bucket,
        store: Store,
        order: KeyOrder,
        row: Callable[[SessionGroup, Session, LogError], Row | None],
        log: LogError,
    ) -> None:
        self._bucket = bucket
        self._order = order
        self._row = row
        self._log = log
        self._due = Timers.read(store, 1, bucket.open_ms)
        self._limit = -1
        self._new: dict[bytes, int] = {}
        self._alive: set[bytes] = set()
        self._waiting: list[tuple[int, int, bytes]] = []

    def load(self, records: Sequence[Record]) -> None:
        """Fetch what ``begin`` looks through."""
        newest = max((record.timestamp for record in records), default=-1)
        self._limit = max(newest, self._bucket.stream_time) - self._bucket.open_ms - 1
        self._due.load_upto(self._limit)

    def begin(self, earliest: dict[bytes, int]) -> None:
        """Find the sessions that may close; their groups are to be loaded from their ends on."""
        for whole in self._due.upto(self._limit):
            key, (start, end) = _KEYS.split(whole)
            if end <= self._limit:
                self._waiting.append((end, start, key))
                self._alive.add(whole)
                earliest[key] = min(end, earliest.get(key, end))
        heapify(self._waiting)

    def removed(
        self, group: SessionGroup, session: Session, _old: Row | None, _record: Record
    ) -> None:
        """Let a session that is no more wait no longer."""
        self._forget(session_key(group.key, session.start, session.end), session.end)

    def updated(
        self, group: SessionGroup, session: Session, old: Row | None, _record: Record
    ) -> None:
        """Let a session wait, if it did not before under the same bounds."""
        if old is not None:
            return
        end, whole = session.end, session_key(group.key, session.start, session.end)
        self._new[whole] = end
        if end <= self._limit:
            self._alive.add(whole)
            heappush(self._waiting, (end, session.start, group.key))

    def after(self, record: Record) -> Iterator[Record]:
        """Return the results of the sessions that have closed with that record."""
        waiting, close_time = self._waiting, self._bucket.close_time
        closed = []
        while waiting and waiting[0][0] < close_time:
            end, start, key = heappop(waiting)
            whole = session_key(key, start, end)
            if whole in self._alive:  # else it was merged since
                self._forget(whole, end)
                closed.append((end, start, self._order(key), key))
        for end, start, _, key in sorted(closed):
            if end < self._bucket.kept_from:
                self._log(
                    "aggregate", f"{FORGOTTEN}: the session from {start} to {end}", record.row
                )
                continue
            group = self._bucket.group(key)
            row = self._row(group, group.of(start, end), self._log)
            if row is not None:
                yield record._replace(key=key, row=row, timestamp=end, old=None)

    def finish(self) -> Iterator[Record]:
        """Store what waits; nothing else is to be emitted."""
        for whole, end in self._new.items():
            self._due.add(end, whole)
        self._due.write(self._bucket.close_time)
        return iter(())

    def _forget(self, whole: bytes, end: int) -> None:
        self._alive.discard(whole)
        if self._new.pop(whole, None) is None:
            self._due.remove(end, whole)
