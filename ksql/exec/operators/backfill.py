"""The state of an aggregate that gets more aggregates, from two states that have read as far.

The *kept* state is that of the plan which ran so far: it may know records that Kafka no longer has.
The *built* one is that of a plan with added aggregates, which has read what there is. Together they
are the state of the new plan. Cells of slots that both plans have come from the kept state, cells
of added slots from the built one. A group that only one of them knows has empty aggregates in place
of what the other would know.

Every group is given as a record, so that the result's topic can be brought to the new rows. A
session that gets other bounds is a deletion and a new row. A window that one of the states has
forgotten by time is forgotten: its row stays as it is. Putting the same states together again
gives the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksql.exec.operators import keys
from ksql.exec.operators.aggregate import GROUPS, AggregateProcessor
from ksql.exec.operators.base import LogError, Processor, Record, Store
from ksql.exec.operators.expiry import ExpiringProcessor, put_together
from ksql.exec.operators.folds import Folds, State, log_failure
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import Session, latest_end, reachable_sessions, rewrite
from ksql.exec.operators.windows import Clock, Windows

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from ksql.core import Row

_START: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Backfill:
    """Puts states together; slots from number ``first_added`` on are those of added aggregates."""

    first_added: int

    def records(
        self, processor: Processor, kept: Store, built: Store, log: LogError
    ) -> Iterator[Record]:
        """Write the new plan's state into ``built``, and yield a record for each of its groups.

        ``old`` of a record is its own row: what HAVING keeps out is deleted from the result.
        """
        match processor:
            case AggregateProcessor(windows=None):
                if isinstance(processor, ExpiringProcessor):
                    put_together(kept, built)
                yield from self._groups(processor.folds, kept, built, log)
            case AggregateProcessor(windows=Windows() as windows):
                yield from self._windows(processor.folds, windows, kept, built, log)
            case SessionProcessor(final=None):
                yield from self._sessions(processor, kept, built, log)
            case _:
                raise AssertionError(f"{processor} is not backfilled")

    def _groups(self, folds: Folds, kept: Store, built: Store, log: LogError) -> Iterator[Record]:
        for key, state in self._merged(folds, GROUPS, kept, built):
            group = tuple(keys.unpack(key))
            yield from _records(folds, key, group, state, (), log)

    def _windows(
        self, folds: Folds, windows: Windows, kept: Store, built: Store, log: LogError
    ) -> Iterator[Record]:
        """Put windows together; those that no record can reach any more are forgotten."""
        earlier, clock = Clock.read(kept, windows), Clock.read(built, windows)
        clock.advance(earlier.stream_time)
        clock.segments |= earlier.segments
        clock.forget(built)
        for segment in sorted(clock.segments):
            space = clock.space(segment * windows.segment_ms)
            for key, state in self._merged(folds, space, kept, built):
                group, (start,) = key[: -_START.size], _START.unpack(key[-_START.size :])
                bounds = (start, start + windows.size_ms)
                values = tuple(keys.unpack(group))
                yield from _records(folds, group, values, state, bounds, log)
        if clock.stream_time >= 0:
            clock.write(built)

    def _merged(
        self, folds: Folds, space: bytes, kept: Store, built: Store
    ) -> Iterator[tuple[bytes, State]]:
        theirs, mine = dict(kept.scan(space)), dict(built.scan(space))
        states: dict[bytes, State] = {}
        for key in {**theirs, **mine}:
            states[key] = self._state(
                folds,
                None if key not in theirs else folds.complete(theirs[key]),
                None if key not in mine else folds.complete(mine[key]),
            )
        mark = folds.generation_mark
        built.put_all(space, {k: _plain(state, mark) for k, state in states.items()})
        yield from states.items()

    def _state(self, folds: Folds, kept: State | None, built: State | None) -> State:
        """Return a group's state; both have as many cells."""
        state = folds.init() if kept is None else [*kept]
        if built is not None:
            first = 1 + self.first_added
            state[first:] = built[first:]
            state[0] = max(state[0], built[0])
        return state

    def _sessions(
        self, processor: SessionProcessor, kept: Store, built: Store, log: LogError
    ) -> Iterator[Record]:
        """Put sessions together; those that no record can reach any more are forgotten."""
        folds, windows = processor.folds, processor.windows
        latest, groups = latest_end(kept, built), dict[bytes, _Sessions]()
        for key, session in reachable_sessions(kept, windows, latest):
            groups.setdefault(key, _Sessions()).kept.append(session)
        for key, session in reachable_sessions(built, windows, latest):
            groups.setdefault(key, _Sessions()).built.append(session)
        merged: dict[bytes, list[Session]] = {}
        for key, group in groups.items():
            merged[key] = list(self._joined(folds, group, windows.gap_ms))
            values = tuple(keys.unpack(key))
            yield from _outgrown(processor.results, key, group.kept, merged[key])
            for session in merged[key]:
                bounds = (session.start, session.end)
                yield from _records(folds, key, values, session.state or [], bounds, log)
        if latest >= 0:
            rewrite(built, windows, merged, folds.generation_mark, kept)

    def _joined(self, folds: Folds, group: _Sessions, gap_ms: int) -> Iterator[Session]:
        """Yield the sessions of a group: those that are one are put together."""
        for kept, built in group.together(gap_ms):
            both = [*kept, *built]
            start, end = min(s.start for s in both), max(s.end for s in both)
            state = self._state(folds, _whole(folds, kept), _whole(folds, built))
            state[0] = end
            yield Session(start, end, state)


@dataclass(slots=True)
class _Sessions:
    """The sessions of a group in both states."""

    kept: list[Session] = field(default_factory=list)
    built: list[Session] = field(default_factory=list)

    def together(self, gap_ms: int) -> Iterator[tuple[list[Session], list[Session]]]:
        """Yield the sessions of both states that are one.

        They are one if they are near. But one state may have two that are near: the first was past
        its retention when the second began. They stay apart.
        """
        known = {_bounds(s) for s in self.kept}, {_bounds(s) for s in self.built}
        waiting = [*((s, 0) for s in self.kept), *((s, 1) for s in self.built)]
        waiting.sort(key=lambda item: _bounds(item[0]))
        while waiting:
            met, waiting = _met(waiting, known, gap_ms)
            yield [s for s, side in met if side == 0], [s for s, side in met if side == 1]


_OfState = tuple[Session, int]
"""A session and the number of its state."""


def _bounds(session: Session) -> tuple[int, int]:
    return session.start, session.end


def _met(
    sessions: Sequence[_OfState], known: Sequence[Container[tuple[int, int]]], gap_ms: int
) -> tuple[list[_OfState], list[_OfState]]:
    """Return the sessions that are one with the first, and all others.

    ``known`` has the bounds of the sessions of each state.
    """
    met, others = [sessions[0]], list(sessions[1:])
    for one, side in met:  # it grows meanwhile
        for item in [*others]:
            other, other_side = item
            if other.start > one.end + gap_ms:
                break
            apart = (
                side == other_side
                or _bounds(one) in known[other_side]
                or _bounds(other) in known[side]
            )
            near = one.start <= other.end + gap_ms
            if _bounds(one) == _bounds(other) or (near and not apart):
                met.append(item)
                others.remove(item)
    return met, others


def _whole(folds: Folds, sessions: Sequence[Session]) -> State | None:
    """Return the state of sessions that became one; None if there is none."""
    states = [folds.complete(session.stored) for session in sessions]
    if len(states) < 2:
        return states[0] if states else None
    whole = folds.init()
    for state in states:
        assert folds.merge is not None  # noqa: S101 - aggregates of sessions have it
        folds.merge(whole, state)
    return whole


def _outgrown(
    results: int, key: bytes, kept: Sequence[Session], merged: Sequence[Session]
) -> Iterator[Record]:
    """Yield a deletion of each row whose session has other bounds now.

    ``results`` is how many columns the aggregates make.
    """
    bounds = {(session.start, session.end) for session in merged}
    values, unknown = tuple(keys.unpack(key)), (None,) * results
    for session in kept:
        end = session.end
        if (session.start, end) not in bounds:
            old = (*values, *unknown, end, session.start, end)
            yield Record(port=0, key=key, row=None, timestamp=end, old=old, sequence_key=end)


def _plain(state: State, mark: bytes | None) -> State:
    return state if mark is None else [mark, *state]


def _records(
    folds: Folds, key: bytes, group: Row, state: State, bounds: Row, log: LogError
) -> Iterator[Record]:
    """Yield the row of a group; none, and an entry in the log, if a function fails."""
    try:
        results = folds.result(state)
    except Exception as error:  # noqa: BLE001 - any failure of a function leaves the row out
        log_failure(error, log, (*group, *bounds))
        return
    row = (*group, *results, state[0], *bounds)
    time = state[0]
    yield Record(port=0, key=key, row=row, timestamp=time, old=row, sequence_key=time)
