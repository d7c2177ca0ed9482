"""GROUP BY: the state of each group, folded record by record.

Rows in: the arguments of the aggregates; the record's key is the packed group. Rows out: the
group's values, the aggregates' results, ROWTIME, and for windows WINDOWSTART and WINDOWEND; ``old``
is the row that this one replaces. A record of the port ``COMBINED`` carries a partial state instead
of arguments (see ``Combiner``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors import keys
from ksql.processors.base import LogError, Record, Row, Store
from ksql.processors.folds import Folds, State
from ksql.processors.order import in_order
from ksql.processors.windows import Clock, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GROUPS = b"g"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The stateful operator.

    ``every_change`` emits for each record, else once per group and call. ``combined`` says that
    records carry partial states. ``keep_old`` asks for the replaced row (HAVING and table consumers
    need it). ``port`` is that of the records it returns.
    """

    folds: Folds
    windows: Windows | None
    every_change: bool
    combined: bool
    keep_old: bool
    port: int = 0

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterable[Record]:
        """Fold the records into their groups' states."""
        records = records if self.combined else in_order(records)
        if self.windows is None:
            store.load(GROUPS, {record.key for record in records})
            groups = ((GROUPS, record.key, 0, record) for record in records)
            yield from self._folded(groups, store, log)
            return
        clock = Clock.read(store, self.windows)
        places = list(self._placed(records, clock, log))
        wanted: dict[bytes, set[bytes]] = {}
        for space, key, _, _ in places:
            wanted.setdefault(space, set()).add(key)
        for space, some in wanted.items():
            store.load(space, some)
        yield from self._folded(places, store, log)
        clock.write(store)

    def _placed(
        self, records: Sequence[Record], clock: Clock, log: LogError
    ) -> Iterator[tuple[bytes, bytes, int, Record]]:
        assert self.windows is not None  # noqa: S101 - narrows the type for the only caller
        for record in records:
            clock.advance(record.timestamp)
            for start in self.windows.starts(record.timestamp):
                if clock.is_late(start):
                    log("aggregate", f"late record for the window starting at {start}", record.row)
                    continue
                yield clock.space(start), keys.with_window(record.key, start), start, record

    def _folded(
        self, places: Iterable[tuple[bytes, bytes, int, Record]], store: Store, log: LogError
    ) -> Iterator[Record]:
        held: dict[tuple[bytes, bytes], tuple[Record, State, Row | None, int]] = {}
        folds = self.folds
        for space, key, start, record in places:
            entry = held.get((space, key))
            if entry is None:
                state = store.get(space, key)
                fresh = state is None
                state = folds.init() if fresh else folds.complete(state)
                old = None if fresh or not self.keep_old else self._row(record, state, start)
            else:
                _, state, old, _ = entry
            if not self._apply(record, state, log):
                continue
            if self.every_change:
                row = self._row(record, state, start)
                yield self._change(record, state, row, old)
                old = row if self.keep_old else None
            held[space, key] = (record, state, old, start)
        for (space, key), (record, state, old, start) in held.items():
            store.put(space, key, state)
            if not self.every_change:
                yield self._change(record, state, self._row(record, state, start), old)

    def _apply(self, record: Record, state: State, log: LogError) -> bool:
        folds = self.folds
        try:
            if self.combined and record.row is not None:
                assert folds.merge is not None  # noqa: S101 - combined plans have mergeable folds only
                folds.merge(state, record.row)
                return True
            if record.old is not None and folds.undo is not None:
                folds.undo(state, record.old)
            if record.row is not None:
                folds.step(state, record.row)
        except Exception as error:  # noqa: BLE001 - any failure of a function skips the record
            log("aggregate", str(error) or type(error).__name__, record.row)
            return False
        if record.timestamp > state[0]:
            state[0] = record.timestamp
        return True

    def _row(self, record: Record, state: State, start: int) -> Row:
        row = (*keys.unpack(record.key), *self.folds.result(state), state[0])
        return row if self.windows is None else (*row, start, start + self.windows.size_ms)

    def _change(self, record: Record, state: State, row: Row, old: Row | None) -> Record:
        return Record(
            self.port,
            record.key,
            row,
            state[0],
            record.topic,
            record.partition,
            record.offset,
            record.headers,
            old,
        )


class Combiner:
    """Folds rows before the exchange, where only the last change per batch will be seen anyway."""

    def __init__(self, folds: Folds, port: int) -> None:
        self._folds = folds
        self._port = port
        self._states: dict[bytes, State] = {}

    def add(self, key: bytes, row: Row, timestamp: int, log: LogError) -> None:
        """Take a row in."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._folds.init()
        try:
            self._folds.step(state, row)
        except Exception as error:  # noqa: BLE001 - any failure of a function skips the record
            log("aggregate", str(error) or type(error).__name__, row)
            return
        if timestamp > state[0]:
            state[0] = timestamp

    def finish(self) -> list[Record]:
        """One record per group, with its partial state as row."""
        port = self._port
        return [Record(port, key, tuple(s), s[0]) for key, s in self._states.items()]
