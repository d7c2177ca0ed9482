"""The ingest of a task where records are combined by group and window; see ``operators.panes``."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from ksql.exec.dataflow.ingest import KeyedRows, SourceIngest, by_topic
from ksql.exec.operators.base import LogError, Record
from ksql.exec.operators.keyed_batches import KeyedBatch, Parts
from ksql.exec.operators.keys import pack
from ksql.exec.operators.order import SequenceKeys
from ksql.exec.operators.panes import PaneFold, Panes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ksql.core import Row
    from ksql.exec.codegen.folding import PaneFolding
    from ksql.exec.codegen.fused import Decoded
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.timestamps import FutureTimestamps
    from ksql.exec.operators.commit_intervals import CommitIntervals

_new = tuple.__new__


class WindowedIngest:
    """Records that may be late by one of this micro-batch leave at once, the others as states.

    Where most records of a partition turn out to have a state of their own, the rest of them leaves
    as it is.
    A result has the headers of the last record of its group: from the first batch with headers on
    nothing is combined any more. Where only some partitions have headers, a group of several may
    get those of its last record that came by itself.
    """

    def __init__(
        self,
        sources: Mapping[str, Sequence[SourceIngest]],
        fold: PaneFold,
        intervals: CommitIntervals | None,
        ahead: FutureTimestamps | None = None,
    ) -> None:
        self.sources = sources
        self._fold = fold
        self._intervals = intervals
        self._sequence_keys = SequenceKeys()
        self._ahead = ahead
        self._panes: dict[tuple[SourceIngest, int], Panes] = {}
        self._headed = False
        self._sparse: set[tuple[SourceIngest, int]] = set()

    def add(self, batch: RawBatch, log: LogError) -> Parts:
        """Fold a batch; return the records that are not folded."""
        out: list[KeyedBatch | Sequence[Record]] = []
        for topic, part in by_topic(batch):
            self._headed = self._headed or part.headers is not None
            for source in self.sources.get(topic, ()):
                if self._headed or (source, part.partitions[0]) in self._sparse:
                    out.append(source.keyed(part, self._sequence_keys, log, self._ahead))
                    continue
                folding = source.paning
                decoded = None if folding is None else folding.decoded(part, log)
                if folding is None or decoded is None:
                    placed = source.placed(part, self._sequence_keys, log)
                    out.append(self._placed(source, part, placed))
                else:
                    out += self._decoded(source, folding, part, decoded, log)
        return Parts(out)

    def _decoded(
        self,
        source: SourceIngest,
        folding: PaneFolding,
        batch: RawBatch,
        decoded: Decoded,
        log: LogError,
    ) -> Sequence[KeyedBatch | Sequence[Record]]:
        """Fold a batch in one loop, if all its records are folded."""
        times, partitions, offsets = decoded.times, decoded.partitions, decoded.offsets
        if not times:
            return ()
        sequence_keys = self._sequence_keys.of(source.stage_input.port, partitions, times)
        partition, ahead = partitions[0], self._ahead
        alone = partitions.count(partition) == len(partitions)
        panes = self._panes_of(source, partition) if alone else None
        if (
            panes is None
            or panes.undecided(times, sequence_keys)
            or (ahead is not None and ahead.is_far(times))
        ):
            rows = folding.rows(decoded, log)
            placed = KeyedRows(rows, times, partitions, offsets, sequence_keys)
            return [self._placed(source, batch, placed)]
        lost = folding.fold(decoded, sequence_keys, panes, log)
        places, rows = [index for index, _ in lost], [row for _, row in lost]
        left = list(_left(source, partition, places, rows, times, offsets, sequence_keys))
        if not panes.is_sparse(len(times)):
            return [left]
        self._sparse.add((source, partition))
        return [left, self._finished(source, partition)]

    def _placed(self, source: SourceIngest, batch: RawBatch, placed: KeyedRows) -> list[Record]:
        """Fold the rows of a batch that may be folded; return the records of the others."""
        self._warn(batch, placed)
        out: list[Record] = []
        for partition, some in _by_partition(placed):
            apart = self._panes_of(source, partition).add(
                some.rows, some.times, some.offsets, some.sequence_keys
            )
            rows = [row for index in apart if (row := some.rows[index]) is not None]
            out += _left(
                source, partition, apart, rows, some.times, some.offsets, some.sequence_keys
            )
        return out

    def _panes_of(self, source: SourceIngest, partition: int) -> Panes:
        panes = self._panes.get((source, partition))
        if panes is None:
            panes = self._panes[source, partition] = Panes(self._fold, self._intervals)
        return panes

    def finish(self) -> Parts:
        """Return a record per group, pane and commit interval."""
        return Parts([self._finished(*place) for place in list(self._panes)])

    def _finished(self, source: SourceIngest, partition: int) -> KeyedBatch:
        stage_input = source.stage_input
        folded = self._panes.pop((source, partition)).finish(
            (stage_input.port, source.topic, partition)
        )
        lanes = stage_input.lanes_of_packed(folded.keys, [partition] * len(folded))
        return replace(folded, lanes=lanes if stage_input.moving else max(lanes, default=0))

    def _warn(self, batch: RawBatch, placed: KeyedRows) -> None:
        if self._ahead is None or not self._ahead.is_far(placed.times):
            return
        places = [index for index, row in enumerate(placed.rows) if row is not None]
        decoded = batch._replace(partitions=placed.partitions, offsets=placed.offsets)
        self._ahead.see(decoded, [placed.times[index] for index in places], places)


def _left(
    source: SourceIngest,
    partition: int,
    places: Sequence[int],
    rows: Sequence[Row],
    times: Sequence[int],
    offsets: Sequence[int],
    sequence_keys: Sequence[int],
) -> Iterable[Record]:
    """Return the records at these places, with those rows: they are not folded."""
    if not places:
        return ()
    width = source.stage_input.width
    keys = [pack(row[:width]) for row in rows]
    partitions = [partition] * len(keys)
    columns = zip(
        repeat(source.stage_input.port),
        keys,
        [row[width:] for row in rows],
        [times[index] for index in places],
        repeat(source.topic),
        partitions,
        [offsets[index] for index in places],
        repeat(None),
        repeat(None),
        [sequence_keys[index] for index in places],
        source.stage_input.lanes_of_packed(keys, partitions),
    )
    # the tuple's own constructor: the records are built without a Python-level call each
    return map(_new, repeat(Record), columns)


def _by_partition(placed: KeyedRows) -> Iterator[tuple[int, KeyedRows]]:
    """Return the records cut by partition; in a task of Spark's they have one."""
    numbers = set(placed.partitions)
    if len(numbers) <= 1:
        yield from ((number, placed) for number in numbers)
        return
    for number in sorted(numbers):
        places = [index for index, partition in enumerate(placed.partitions) if partition == number]
        yield (
            number,
            KeyedRows(
                [placed.rows[index] for index in places],
                [placed.times[index] for index in places],
                [number] * len(places),
                [placed.offsets[index] for index in places],
                [placed.sequence_keys[index] for index in places],
            ),
        )
