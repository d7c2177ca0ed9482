"""The records that an aggregate with TUMBLING or HOPPING windows writes; see ``aggregated``."""

from __future__ import annotations

from itertools import chain, repeat
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.core.types import window_key
from ksql.exec.codegen.aggregate_loops import (
    FoldedColumns,
    IntervalLoop,
    LoggedEntries,
    ResultEncoding,
    without,
)
from ksql.exec.operators.base import sequence_key_of
from ksql.exec.operators.stream_partitions import by_lane, columns_by_lane, together
from ksql.exec.operators.windows import Clock
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Mapping, Sequence

    from ksql.core import OutRecord, Row
    from ksql.exec.operators.aggregate import AggregateProcessor
    from ksql.exec.operators.base import LogError, Record, Store
    from ksql.exec.operators.folds import State
    from ksql.exec.operators.keyed_batches import Queues, StreamColumns
    from ksql.exec.operators.windows import Windows

_key = itemgetter(1)
_row = itemgetter(2)
_timestamp = itemgetter(3)
_headers = itemgetter(7)
_old = itemgetter(8)


class _Visited(NamedTuple):
    """Records in processing order with the windows that they visit, and the time after them.

    The different windows of groups are in the order of the first visits. They have the ``keys`` of
    their states, their groups and their starts. ``spaces`` has the keys of each space.
    """

    records: FoldedColumns
    keys: Collection[bytes]
    groups: Sequence[bytes]
    starts: Sequence[int]
    spaces: Mapping[bytes, Collection[bytes]]
    clock: Clock

    @classmethod
    def of(
        cls, records: FoldedColumns, groups: Sequence[bytes], starts: Sequence[int], clock: Clock
    ) -> _Visited:
        """Take the group of each record and the start of its window; the clock has seen all."""
        keys = dict(zip(records.keys, range(len(records.keys)), strict=True))
        groups = [groups[place] for place in keys.values()]
        starts = [starts[place] for place in keys.values()]
        space_of = {start: clock.space(start) for start in dict.fromkeys(starts)}
        spaces: dict[bytes, Collection[bytes]] = dict.fromkeys(space_of.values(), keys)
        if len(spaces) > 1:
            placed = [(space_of[start], key) for start, key in zip(starts, keys, strict=True)]
            spaces = {space: [key for at, key in placed if at == space] for space in spaces}
        return cls(records, keys, groups, starts, spaces, clock)

    def states(self, processor: AggregateProcessor, store: Store) -> list[State]:
        """Return the states of the windows, which are the caller's own."""
        if len(self.spaces) == 1:
            (space,) = self.spaces
            return processor.states(self.keys, store, space)
        by_key: dict[bytes, State] = {}
        for space, some in self.spaces.items():
            by_key |= zip(some, processor.states(some, store, space), strict=True)
        return list(map(by_key.__getitem__, self.keys))

    def keep(
        self, states: Mapping[bytes, State], processor: AggregateProcessor, store: Store
    ) -> None:
        """Store the states that count, and the time."""
        for space, some in self.spaces.items():
            kept = states if some is self.keys else {k: states[k] for k in some if k in states}
            processor.keep(kept, store, space)
        self.clock.write(store)


_Part = tuple[_Visited, "Store"]
"""What the records of a lane visit, and its part of the store."""


class AggregatedWindows:
    """The records that an aggregate with windows writes; ``laned`` as in ``Compiled``."""

    def __init__(
        self,
        processor: AggregateProcessor,
        windows: Windows,
        loops: tuple[IntervalLoop, IntervalLoop],
        width: int,
        writing: ResultEncoding,
        *,
        laned: bool,
    ) -> None:
        """Take the loops over records, and over columns; ``width``: so many are carried."""
        self._processor = processor
        self._windows = windows
        self._loop, self._column_loop = loops
        self._width = width
        self._writing = writing
        self._laned = laned

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if not all is ordinary."""
        if any(map(_headers, records)) or not self._whole(records):
            return None
        lanes = by_lane(records, store, laned=self._laned)
        said = LoggedEntries()
        calls = [self._visited(some, part, said.log) for some, part in lanes]
        visited = zip(together(calls), (part for _, part in lanes), strict=True)
        return self._written(self._loop, list(visited), said, log)

    def by_column(self, records: Queues, store: Store, log: LogError) -> list[OutRecord] | None:
        """Return the same for records in no order; None also if any of them is late."""
        lanes = columns_by_lane(records, store, laned=self._laned)
        if lanes is None:
            return None
        calls = together([self._visited_by_column(given, part) for given, part in lanes])
        visited = [
            (some, part) for some, (_, part) in zip(calls, lanes, strict=True) if some is not None
        ]
        if len(visited) < len(lanes):
            return None
        return self._written(self._column_loop, visited, LoggedEntries(), log)

    def _whole(self, records: Sequence[Record]) -> bool:
        """Return whether each record has arguments, or a state where records may be combined."""
        if not self._processor.combined:
            return None not in map(_row, records)
        return all(r is not None or o is not None for _, _, r, _, _, _, _, _, o, _, _ in records)

    def _visited(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> Generator[None, None, _Visited]:
        visits = yield from self._processor.visits(records, self._windows, store, log)
        visiting = [record for _, _, _, record in visits.places]
        cells = [list(map(item, visiting)) for item in (_row, _timestamp)]
        if self._processor.combined:
            cells.append(list(map(_old, visiting)))
        turns = list(map(sequence_key_of, visiting))
        given = FoldedColumns([key for _, key, _, _ in visits.places], turns, cells)
        starts = [start for _, _, start, _ in visits.places]
        return _Visited.of(given, list(map(_key, visiting)), starts, visits.clock)

    def _visited_by_column(
        self, given: StreamColumns, store: Store
    ) -> Generator[None, None, _Visited | None]:
        Clock.load(store)
        yield
        clock = Clock.read(store, self._windows)
        starts = clock.tumbled(given.times)
        if starts is None:
            return None
        suffixes = {start: window_key(b"", start) for start in set(starts)}
        keys = list(map(add, given.keys, map(suffixes.__getitem__, starts)))
        nothing = [None] * len(keys)
        cells: list[Sequence[Any]] = [given.times]
        if self._processor.combined:
            cells.append(given.states or nothing)
        cells += given.columns or [nothing] * self._width
        records = FoldedColumns(keys, given.sequence_keys, cells)
        visited = _Visited.of(records, given.keys, starts, clock)
        for space, some in visited.spaces.items():
            store.load(space, some)
        yield
        return visited

    def _written(
        self, loop: IntervalLoop, visited: Sequence[_Part], said: LoggedEntries, log: LogError
    ) -> list[OutRecord] | None:
        """Return the records of all lanes, and store what follows from them."""
        try:
            done = [self._folded(loop, *each, said.log) for each in visited]
        except EncodeError:
            return None
        said.repeat(log)
        for (some, part), (_, states) in zip(visited, done, strict=True):
            some.keep(states, self._processor, part)
        return list(chain.from_iterable(out for out, _ in done))

    def _folded(
        self, loop: IntervalLoop, visited: _Visited, store: Store, log: LogError
    ) -> tuple[list[OutRecord], dict[bytes, State]]:
        """Return the records of a lane, and the states that count.

        Raises: EncodeError.
        """
        states = visited.states(self._processor, store)
        out, never = loop.records(visited.records, self._groups(visited, states), log)
        return out, without(never, visited.keys, states)

    def _groups(self, visited: _Visited, states: Sequence[State]) -> dict[bytes, Any]:
        """Return state, encoded key, values and bounds of each window of a group.

        Raises: EncodeError.
        """
        packed = dict.fromkeys(visited.groups)
        encoded, values = self._writing.keys(packed)
        text_of = dict(zip(packed, encoded, strict=True))
        size = self._windows.size_ms
        ends = {
            start: (window_key(b"", start), (start, start + size)) for start in {*visited.starts}
        }
        texts = [
            None if (text := text_of[group]) is None else text + ends[start][0]
            for group, start in zip(visited.groups, visited.starts, strict=True)
        ]
        of_group: Iterable[Row | None] = repeat(None)
        if values is not None:
            of_group = map(dict(zip(packed, values, strict=True)).__getitem__, visited.groups)
        bounds = [ends[start][1] for start in visited.starts]
        groups = zip(states, texts, of_group, bounds)  # noqa: B905 - values may repeat
        return dict(zip(visited.keys, groups, strict=True))
