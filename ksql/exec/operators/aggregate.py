"""GROUP BY: the state of each group, folded record by record.

Rows in: the arguments of the aggregates; the record's key is the packed group. Rows out: the
group's values, the aggregates' results, ROWTIME, and for windows WINDOWSTART and WINDOWEND; ``old``
is the row that this one replaces. A group whose results fail has no row at that time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from ksql.core.types import window_key
from ksql.exec.operators import keys
from ksql.exec.operators.base import LogError, PausingProcessor, Record, Steps, Store
from ksql.exec.operators.commit_intervals import CommitIntervals, by_time
from ksql.exec.operators.folds import Folds, State, log_failure, logged_before, replaced
from ksql.exec.operators.panes import log_late
from ksql.exec.operators.windows import Clock, Windows

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from ksql.core import Row

GROUPS = b"g"
Place = tuple[bytes, bytes, int, Record]
"""Space and key of a state, start of its window (or 0), and a record for it."""
_new = tuple.__new__


def place_sequence_key(place: Place) -> int:
    """Return the sequence key of the record that visits a place."""
    return place[3].sequence_key


class VisitOrder(NamedTuple):
    """The places that records visit, in order, and the time when all are done.

    ``starts`` has the keys of each space, with the starts of their windows.
    """

    places: list[Place]
    starts: Mapping[bytes, Mapping[bytes, int]]
    clock: Clock


@dataclass(frozen=True, slots=True)
class AggregateProcessor(PausingProcessor):
    """The stateful operator.

    With ``intervals`` a group has one change for each of them and call, else one for each record.
    ``combined`` says that records carry partial states instead of arguments (see ``combine``), with
    windows that some do so in ``old`` (see ``panes``). ``keep_old`` asks for the replaced row
    (HAVING and table consumers need it).
    """

    folds: Folds
    windows: Windows | None
    intervals: CommitIntervals | None
    combined: bool
    keep_old: bool

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Fold the records into their groups' states."""
        if self.windows is None:
            packed = [record.key for record in records]
            store.load(GROUPS, set(packed))
            yield
            places = list(zip(repeat(GROUPS), packed, repeat(0), records))
            return self._folded(places, store, log)
        visits = yield from self.visits(records, self.windows, store, log)
        return self._timed(visits, store, log)

    def visits(
        self, records: Sequence[Record], windows: Windows, store: Store, log: LogError
    ) -> Generator[None, None, VisitOrder]:
        """Find the windows of records in processing order; return what is to be done for them."""
        Clock.load(store)
        yield
        clock = Clock.read(store, windows)
        places = list(self._placed(records, windows, clock, log))
        starts_by_space: defaultdict[bytes, dict[bytes, int]] = defaultdict(dict)
        for space, key, start, _ in places:
            starts_by_space[space][key] = start
        for space, some in starts_by_space.items():
            store.load(space, some)
        yield
        return VisitOrder(places, starts_by_space, clock)

    def states(self, packed: Collection[bytes], store: Store, space: bytes) -> list[State]:
        """Return the states of groups, which are the caller's own."""
        init, complete = self.folds.init, self.folds.complete
        size = 0 if self.folds.generation_mark else len(init())
        return [
            init()
            if stored is None
            else stored  # which is complete: a call less for each
            if len(stored) == size and stored[0].__class__ is int
            else complete(stored)
            for stored in store.get_all(space, packed)
        ]

    def keep(self, states: Mapping[bytes, State], store: Store, space: bytes) -> None:
        """Store the states of groups."""
        generation_mark = self.folds.generation_mark
        if generation_mark is not None:
            states = {key: [generation_mark, *state] for key, state in states.items()}
        store.put_all(space, states)

    def _timed(self, visits: VisitOrder, store: Store, log: LogError) -> Iterator[Record]:
        yield from self._folded(visits.places, store, log)
        visits.clock.write(store)

    def _placed(
        self, records: Sequence[Record], windows: Windows, clock: Clock, log: LogError
    ) -> Iterator[Place]:
        starts, spaces = windows.starts, dict[int, tuple[bytes, bytes]]()
        latest, closed = clock.stream_time, windows.last_closed(clock.stream_time)
        for record in records:
            time, key = record[3], record[1]
            if time > latest:
                clock.advance(time)
                latest, closed = time, windows.last_closed(time)
            for start in starts(time):
                if start <= closed:
                    log_late(record, start, starts(time), closed, latest, log)
                    continue
                window = spaces.get(start)
                if window is None:
                    window = spaces[start] = clock.space(start), window_key(b"", start)
                yield window[0], key + window[1], start, record

    def _folded(self, places: Sequence[Place], store: Store, log: LogError) -> Iterator[Record]:
        groups: dict[bytes, FoldedGroup] = {}
        if self.intervals is None:
            for group, record in self._visited(places, groups, store, log):
                if record is not None and (change := self._change(group, record, log)) is not None:
                    yield change
        else:
            for begin, some in self.intervals.divide(places, place_sequence_key):
                yield from by_time(self._last_changes(some, groups, store, log), begin)
        generation_mark = self.folds.generation_mark
        for key, group in groups.items():
            if group.changed:
                state = group.state
                stored = state if generation_mark is None else [generation_mark, *state]
                store.put(group.space, key, stored)

    def _visited(
        self, places: Iterable[Place], groups: dict[bytes, FoldedGroup], store: Store, log: LogError
    ) -> Iterator[tuple[FoldedGroup, Record | None]]:
        """Fold the records; yield each with its group, None in the place of one that has failed."""
        find, apply = groups.get, self._apply
        for space, key, start, record in places:
            group = find(key)
            if group is None:
                group = groups[key] = self._group(space, key, start, record.key, store)
            if apply(record, group.state, log):
                group.changed = True
                yield group, record
            else:
                yield group, None

    def _last_changes(
        self, places: Iterable[Place], groups: dict[bytes, FoldedGroup], store: Store, log: LogError
    ) -> Iterator[Record]:
        last: dict[FoldedGroup, Record | None] = {}
        for group, record in self._visited(places, groups, store, log):
            last[group] = record or last.get(group)
        for group, record in last.items():
            if record is not None and (change := self._change(group, record, log)) is not None:
                yield change

    def _group(
        self, space: bytes, key: bytes, start: int, packed: bytes, store: Store
    ) -> FoldedGroup:
        stored = store.get(space, key)
        state = self.folds.init() if stored is None else self.folds.complete(stored)
        bounds = () if self.windows is None else (start, start + self.windows.size_ms)
        group = FoldedGroup(space, state, tuple(keys.unpack(packed)), bounds)
        group.shown = group.stored = stored is not None
        if stored is not None and self.keep_old:
            group.row = self._row(group, logged_before)
            group.shown = group.row is not None
        return group

    def _apply(self, record: Record, state: State, log: LogError) -> bool:
        folds = self.folds
        _, _, row, time, _, _, _, _, old, _, _ = record
        try:
            if self.combined:
                partial = row if self.windows is None else old
                if partial is not None:
                    assert folds.merge is not None  # noqa: S101 - combined plans have it
                    folds.merge(state, partial)
                    return True
            if old is None or folds.undo is None or folds.swap is None:
                if row is not None:
                    folds.step(state, row)
            elif not replaced(folds, state, old, row, log):
                return False
        except Exception as error:  # noqa: BLE001 - any failure of a function skips the record
            log_failure(error, log, row)
            return False
        if time > state[0]:
            state[0] = time
        return True

    def _row(self, group: FoldedGroup, log: LogError) -> Row | None:
        state = group.state
        try:
            results = self.folds.result(state)
        except Exception as error:  # noqa: BLE001 - any failure of a function leaves the row out
            log_failure(error, log, (*group.key, *group.bounds))
            return None
        return (*group.key, *results, state[0], *group.bounds)

    def _change(self, group: FoldedGroup, record: Record, log: LogError) -> Record | None:
        """Return what consumers see; a row without results is left out, or does not pass HAVING."""
        port, key, _, _, topic, partition, offset, headers, _, sequence_key, lane = record
        row, old = self._row(group, log), group.row
        if row is None and old is None:
            return None
        if self.keep_old:
            group.row = row
        time = group.state[0]
        values = (port, key, row, time, topic, partition, offset, headers, old, sequence_key, lane)
        # the tuple's own constructor: there may be a change per record
        return _new(Record, values)


class FoldedGroup:
    """A group (of a window) while its records are folded; ``row`` is what its consumers know.

    ``stored``: the store has it. ``shown``: consumers know a row of it, whether or not it is kept.
    """

    __slots__ = ("bounds", "changed", "key", "row", "shown", "space", "state", "stored")

    def __init__(self, space: bytes, state: State, key: Row, bounds: Row) -> None:
        self.space = space
        self.state = state
        self.key = key
        self.bounds = bounds
        self.row: Row | None = None
        self.changed = False
        self.stored = False
        self.shown = False
