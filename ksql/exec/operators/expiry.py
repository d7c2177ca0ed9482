"""GROUP BY with a RETENTION_MS: a row that was not updated for longer leaves with its state.

The time of a row is that of its latest record, and it is compared with stream time. The record that
moves stream time too far deletes the rows that are too old then, before it is folded itself. The
row that is out of date longest goes first; rows of one time go by their packed keys. A deletion has
the time and the coordinates of that record. So it does not depend on how micro-batches are cut.

A record that is too old itself is folded into a row that is there. It begins none: that is logged.

Rows are found by an index of time (``timers``). An entry has the time that its row had when it was
written. It is looked at again when that time has come, and then it leaves or is written again. So a
row has one entry, however many records it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from ksql.exec.operators.aggregate import GROUPS, AggregateProcessor, FoldedGroup
from ksql.exec.operators.base import LateRecord, LogError, Record, Steps, Store, sequence_key_of
from ksql.exec.operators.commit_intervals import by_time
from ksql.exec.operators.panes import logged_rows
from ksql.exec.operators.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence


LATE = "late record: its row would be past RETENTION_MS, and no row of its key is there"
_META = b"m"
_CLOCK = b"ttl"
_NEVER = -1


class Expiry(NamedTuple):
    """How long rows stay without an update, and which index of them is up to date."""

    ttl_ms: int
    generation: int


@dataclass(frozen=True, slots=True)
class ExpiringProcessor(AggregateProcessor):
    """The stateful operator; rows in and out are those of ``aggregate``, without windows."""

    expiry: Expiry

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Fold the records into their groups' states; delete the rows that become too old."""
        if not records:
            return ()
        store.load(GROUPS, {record.key for record in records})
        newest = max(record.timestamp for record in records)
        call = yield from _Call.begun(self, store, newest)
        return self._emitted(records, call, log)

    def _emitted(self, records: Sequence[Record], call: _Call, log: LogError) -> Iterator[Record]:
        if self.intervals is None:
            yield from self._changes(self._each(records, call, log), log)
        else:
            for begin, some in self.intervals.divide(records, sequence_key_of):
                last = {visit[0]: visit for visit in self._each(some, call, log)}
                yield from by_time(self._changes(last.values(), log), begin)
        call.write()

    def _changes(self, visits: Iterable[_Visit], log: LogError) -> Iterator[Record]:
        """Return what consumers see of the visits of groups.

        A row that begins and leaves within a commit interval was never seen, and is not deleted.
        """
        for group, record, gone in visits:
            if gone:
                if group.shown:
                    yield record._replace(row=None, old=group.row)
                group.row, group.shown = None, False
            elif (change := self._change(group, record, log)) is not None:
                group.shown = change.row is not None
                yield change

    def _each(self, records: Sequence[Record], call: _Call, log: LogError) -> Iterator[_Visit]:
        """Fold the records; yield each with its group, after the groups that it lets expire."""
        find, apply = call.groups.get, self._apply
        for record in records:
            key, timestamp = record[1], record[3]
            if timestamp > call.stream_time:
                call.stream_time = timestamp
            for group, gone in call.expired() if call.waiting else ():
                yield group, record._replace(key=gone), True
            group = find(key) or call.group(key)
            state = group.state
            time = state[0]
            if time == _NEVER and call.is_late(timestamp):
                _log_late(record, call.stream_time, log)
            elif apply(record, state, log):
                group.changed = True
                if state[0] != time:
                    call.updated(state[0], key)
                yield group, record, False

    def group_of(self, key: bytes, store: Store) -> FoldedGroup:
        """Return a group as it is in the store."""
        return self._group(GROUPS, key, 0, key, store)


_Visit = tuple[FoldedGroup, Record, bool]
"""A group, the record that changes it, and whether the group is deleted."""


@dataclass(slots=True)
class _Call:
    """The rows of one bucket during a call.

    ``limit`` is the latest time of rows that are too old when the call ends. ``due`` has the rows
    whose entries in the index are of that time or earlier. It has the time of the row and that of
    the entry, None if there is none. ``waiting`` are times and keys of rows that may expire in this
    call.
    """

    processor: ExpiringProcessor
    store: Store
    timers: Timers
    stream_time: int
    limit: int
    due: dict[bytes, tuple[int, int | None]] = field(default_factory=dict)
    waiting: list[tuple[int, bytes]] = field(default_factory=list)
    groups: dict[bytes, FoldedGroup] = field(default_factory=dict)

    @classmethod
    def begun(
        cls, processor: ExpiringProcessor, store: Store, newest: int
    ) -> Generator[None, None, _Call]:
        """Continue where the last call ended; ``newest`` is the latest time of its records."""
        ttl_ms, generation = processor.expiry
        complete = processor.folds.complete
        store.load(_META, (_CLOCK,))
        Timers.load(store)
        yield
        stored = store.get(_META, _CLOCK)
        stream_time, *index = (_NEVER,) if stored is None else stored
        limit = max(newest, stream_time) - ttl_ms - 1
        if index != [generation, ttl_ms]:
            return (yield from cls._indexed(processor, store, stream_time, newest))
        timers = Timers.read(store, 1, ttl_ms)
        timers.load_upto(limit)
        yield
        call = cls(processor, store, timers, stream_time, limit)
        entries = {key: time for key, time in timers.entries(limit) if time <= limit}
        store.load(GROUPS, entries)
        yield
        for key, time in entries.items():
            stored = store.get(GROUPS, key)
            call._is_due(key, _NEVER if stored is None else complete(stored)[0], time)
        return call

    @classmethod
    def _indexed(
        cls, processor: ExpiringProcessor, store: Store, stream_time: int, newest: int
    ) -> Generator[None, None, _Call]:
        """Rebuild the index. Stream time is at least that of the latest row."""
        store.load_space(GROUPS)
        yield
        ttl_ms = processor.expiry.ttl_ms
        complete = processor.folds.complete
        times = {key: complete(state)[0] for key, state in store.scan(GROUPS)}
        stream_time = max([stream_time, *times.values()])
        timers = Timers.cleared(store, 1, ttl_ms)
        call = cls(processor, store, timers, stream_time, max(newest, stream_time) - ttl_ms - 1)
        due = {key: time for key, time in times.items() if time <= call.limit}
        store.load(GROUPS, due)
        yield
        for key, time in times.items():
            if key in due:
                call._is_due(key, time, None)
            else:
                timers.add(time, key, time)
        return call

    def _is_due(self, key: bytes, time: int, entry: int | None) -> None:
        self.due[key] = time, entry
        if time != _NEVER:
            self.updated(time, key)

    def updated(self, time: int, key: bytes) -> None:
        """Let a row expire in this call if it may."""
        if time <= self.limit:
            heappush(self.waiting, (time, key))

    def expired(self) -> Iterator[tuple[FoldedGroup, bytes]]:
        """Empty the rows that are too old; yield each with its key, the oldest first."""
        waiting = self.waiting
        while waiting and self.is_late(waiting[0][0]):
            time, key = heappop(waiting)
            group = self.group(key)
            if group.state[0] == time:  # else it was updated since
                group.state, group.changed = self.processor.folds.init(), True
                yield group, key

    def is_late(self, time: int) -> bool:
        """Return whether a row of that time is too old."""
        return time < self.stream_time - self.processor.expiry.ttl_ms

    def group(self, key: bytes) -> FoldedGroup:
        """Return a group in its present state; the time of one that is not there is -1."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = self.processor.group_of(key, self.store)
        return group

    def write(self) -> None:
        """Store the rows that have changed, their times and stream time."""
        mark, timers, passed = self.processor.folds.generation_mark, self.timers, self.limit + 1
        timers.forget(passed)
        times = {key: time for key, (time, _) in self.due.items()}
        for key, group in self.groups.items():
            if not group.changed:
                continue
            time = group.state[0]
            if key in times or not group.stored:
                times[key] = time
            if time == _NEVER:
                self.store.delete(GROUPS, key)
            else:
                state = group.state if mark is None else [mark, *group.state]
                self.store.put(GROUPS, key, state)
        self._index(times)
        timers.write(passed)
        expiry = self.processor.expiry
        stored = [self.stream_time, expiry.generation, expiry.ttl_ms]
        self.store.put(_META, _CLOCK, stored)

    def _index(self, times: Mapping[bytes, int]) -> None:
        """Write the entries of rows again; those that are not there have none."""
        for key, time in times.items():
            _, entry = self.due.get(key, (_NEVER, None))
            if entry is not None:
                self.timers.remove(entry, key)
            if time != _NEVER:
                self.timers.add(time, key, time)


def _log_late(record: Record, stream_time: int, log: LogError) -> None:
    behind_ms = stream_time - record.timestamp
    late = LateRecord.of(LATE, behind_ms, record.topic, record.partition)
    for row in logged_rows(record):
        log("aggregate", late, row)


def put_together(kept: Store, built: Store) -> None:
    """Leave the later stream time of two states in ``built``; its index is rebuilt later."""
    clocks = [clock for store in (kept, built) if (clock := store.get(_META, _CLOCK))]
    if clocks:
        built.put(_META, _CLOCK, [max(clock[0] for clock in clocks)])
