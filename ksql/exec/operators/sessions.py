"""GROUP BY over SESSION windows: a record joins the sessions of its group that are near in time.

Rows in and out are those of ``aggregate``. A session that gets other bounds is another key of the
result: its former row is deleted before the new one comes. The time of a row is its session's end.
A session whose results fail has no row at that time.
Source: Kafka Streams' ``KStreamSessionWindowAggregate``.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core import Row
from ksql.exec.operators.base import (
    KeyOrder,
    LateRecord,
    LogError,
    PausingProcessor,
    Record,
    Steps,
    Store,
)
from ksql.exec.operators.commit_intervals import CommitIntervals, by_time
from ksql.exec.operators.folds import Folds, State, log_failure, logged_before, stepped
from ksql.exec.operators.sessionstate import Bucket, Session, SessionGroup, SessionWindows
from ksql.exec.operators.suppress import ClosingSessions
from ksql.exec.operators.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterator, Sequence


_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class SessionProcessor(PausingProcessor):
    """The stateful operator.

    With ``intervals`` each session that changed in one is emitted once per call, else for each
    record. With ``final``, an order of groups, sessions are emitted
    when they close instead. ``keep_old`` asks for the replaced row (HAVING). ``results`` is how
    many columns the aggregates make.
    """

    folds: Folds
    windows: SessionWindows
    intervals: CommitIntervals | None
    keep_old: bool
    results: int
    final: KeyOrder | None = None

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Fold the records into their groups' sessions."""
        if self.final is None:
            bucket = yield from self.sessions_of(records, store)
            changes: _Emission = (_EveryChange if self.intervals is None else _LastChange)(
                self, log
            )
            return self._emitted(records, bucket, changes, log)
        Bucket.load_clock(store)
        Timers.load(store)
        yield
        bucket = Bucket.read(store, self.windows, by_segment=True)
        earliest = _earliest(records, self.windows.gap_ms)
        changes = closing = ClosingSessions(bucket, store, self.final, self.row, log)
        closing.load(records)
        yield
        closing.begin(earliest)
        bucket.load(earliest)
        yield
        return self._emitted(records, bucket, changes, log)

    def sessions_of(self, records: Sequence[Record], store: Store) -> Generator[None, None, Bucket]:
        """Fetch the sessions that records may join, of a query without EMIT FINAL."""
        Bucket.load_clock(store)
        yield
        bucket = Bucket.read(store, self.windows)
        bucket.load(_earliest(records, self.windows.gap_ms))
        yield
        return bucket

    def _emitted(
        self, records: Sequence[Record], bucket: Bucket, changes: _Emission, log: LogError
    ) -> Iterator[Record]:
        if self.intervals is None:
            yield from self._changes(records, bucket, changes, log)
        else:
            for begin, some in self.intervals.records(records):
                yield from by_time(self._changes(some, bucket, changes, log), begin)
        bucket.write(self.folds.generation_mark)

    def _changes(
        self, records: Sequence[Record], bucket: Bucket, changes: _Emission, log: LogError
    ) -> Iterator[Record]:
        for record in records:
            bucket.advance(record.timestamp)
            self._take(record, bucket, changes, log)
            yield from changes.after(record)
        yield from changes.finish()

    def _take(self, record: Record, bucket: Bucket, changes: _Emission, log: LogError) -> None:
        time = record.timestamp
        group = bucket.group(record.key)
        near = group.near(time, self.windows.gap_ms, bucket.live_from)
        met = group.sessions[near]
        start = min(time, met[0].start) if met else time
        end = max(time, met[-1].end) if met else time
        if end < bucket.close_time:
            behind_ms = bucket.stream_time - time
            log_late(log, start, end, record.row, behind_ms, record.topic, record.partition)
            return
        olds = [self._known(group, session) for session in met]
        state, others = self.opened(met)
        if not stepped(self.folds, record, state, log, others):
            return
        state[0] = end
        if (start, end) == (time, time):
            session = met[0] if met else Session(start, end, state)
            session.state = state
            changes.updated(group, session, olds[0] if olds else None, record)
        else:
            session = Session(start, end, state)
            for gone, old in zip(met, olds, strict=True):
                changes.removed(group, gone, old, record)
            changes.updated(group, session, None, record)
        bucket.replace(group, near, session)

    def opened(self, met: Sequence[Session]) -> tuple[State, Sequence[State]]:
        """Return the state to fold into, and those to merge into it first.

        A single session's own is left alone by a ``step`` that fails; of several these are copies.
        What the store has is never changed.
        """
        folds = self.folds
        if not met:
            return folds.init(), ()
        states = []
        for session in met:
            if session.state is None:
                session.state = [*folds.complete(session.stored)]
            states.append(session.state)
        if len(states) == 1:
            return states[0], ()
        return folds.init(), copy.deepcopy(states)

    def _known(self, group: SessionGroup, session: Session) -> Row | None:
        """Return the row that consumers have of a session, if any.

        Without HAVING just key and bounds.
        """
        if not self.keep_old:
            end = session.end
            return (*group.values, *(None,) * self.results, end, session.start, end)
        return self.row(group, session, logged_before)

    def row(self, group: SessionGroup, session: Session, log: LogError) -> Row | None:
        """Return the row of a session; None, and logged, if a function fails."""
        if session.state is None:
            session.state = self.folds.complete(session.stored)
        bounds = (session.start, session.end)
        try:
            results = self.folds.result(session.state)
        except Exception as error:  # noqa: BLE001 - any failure of a function leaves the row out
            log_failure(error, log, (*group.values, *bounds))
            return None
        return (*group.values, *results, session.end, *bounds)


def log_late(
    log: LogError,
    start: int,
    end: int,
    row: Row | None,
    behind_ms: int,
    topic: int,
    partition: int,
) -> None:
    """Log that a record is late for the session that it would make; see ``LateRecord``."""
    message = f"late record for the session from {start} to {end}"
    log("aggregate", LateRecord.of(message, behind_ms, topic, partition), row)


class _EveryChange:
    """Emits every change at once."""

    def __init__(self, processor: SessionProcessor, log: LogError) -> None:
        self._row = processor.row
        self._log = log
        self._keep_old = processor.keep_old
        self._out: list[Record] = []

    def removed(
        self, _group: SessionGroup, session: Session, old: Row | None, record: Record
    ) -> None:
        """Delete the row of a session."""
        self._out.append(_changed(record, None, session.end, old))

    def updated(
        self, group: SessionGroup, session: Session, old: Row | None, record: Record
    ) -> None:
        """Emit the row of a session; ``old`` is what consumers have of it."""
        known = old if self._keep_old else None
        row = self._row(group, session, self._log)
        if row is not None or known is not None:
            self._out.append(_changed(record, row, session.end, known))

    def after(self, _record: Record) -> list[Record]:
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Record]:
        """Return nothing: nothing is left."""
        return []


class _LastChange:
    """Emits of each session that changed the last change, at the end of an interval."""

    def __init__(self, processor: SessionProcessor, log: LogError) -> None:
        self._processor = processor
        self._log = log
        self._pending: dict[Hashable, _Change] = {}

    def removed(
        self, group: SessionGroup, session: Session, old: Row | None, record: Record
    ) -> None:
        """Delete the row of a session, if it was ever emitted."""
        former = self._pending.pop(_place(group, session), None)
        if former is None:
            self._put(_Change(group, session, old, record, gone=True))
        elif former.old is not None:
            self._put(_Change(group, session, former.old, record, gone=True))

    def updated(
        self, group: SessionGroup, session: Session, old: Row | None, record: Record
    ) -> None:
        """Emit the row of a session; it may have been deleted a moment ago."""
        former = self._pending.pop(_place(group, session), None)
        self._put(_Change(group, session, former.old if former else old, record))

    def after(self, _record: Record) -> Sequence[Record]:
        """Return nothing yet."""
        return ()

    def finish(self) -> list[Record]:
        """Return the last changes, in their order."""
        pending, self._pending = self._pending, {}
        records = map(self._record, pending.values())
        return [record for record in records if record is not None]

    def _put(self, change: _Change) -> None:
        self._pending[_place(change.group, change.session)] = change

    def _record(self, change: _Change) -> Record | None:
        end = change.session.end
        if change.gone:
            return _changed(change.record, None, end, change.old)
        row = self._processor.row(change.group, change.session, self._log)
        old = change.old if self._processor.keep_old else None
        if row is None and old is None:
            return None
        return _changed(change.record, row, end, old)


def _changed(record: Record, row: Row | None, end: int, old: Row | None) -> Record:
    port, key, _, _, topic, partition, offset, _, _, sequence_key, lane = record
    # the tuple's own constructor: there may be several changes per record
    return _new(
        Record, (port, key, row, end, topic, partition, offset, None, old, sequence_key, lane)
    )


_Emission = _EveryChange | _LastChange | ClosingSessions


@dataclass(slots=True)
class _Change:
    """``old`` is the row that consumers have, if any; ``gone`` deletes it."""

    group: SessionGroup
    session: Session
    old: Row | None
    record: Record
    gone: bool = False


def _place(group: SessionGroup, session: Session) -> Hashable:
    return group.key, session.start, session.end


def _earliest(records: Sequence[Record], gap_ms: int) -> dict[bytes, int]:
    """Return by key the earliest end of the sessions that its records may join."""
    earliest: dict[bytes, int] = {}
    for record in records:
        key, time = record.key, record.timestamp - gap_ms
        if time < earliest.get(key, time + 1):
            earliest[key] = time
    return earliest
