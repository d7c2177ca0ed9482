"""The ingest of a task: from a topic's records to keyed records for the stages."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ksql.exec.dataflow.program import RawBatch
from ksql.exec.operators.base import LogError, Record
from ksql.exec.operators.keyed_batches import KeyedBatch, Parts
from ksql.exec.operators.keys import pack
from ksql.exec.operators.order import SequenceKeys
from ksql.exec.operators.partial_aggregation import Combine, Combiner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.core import Row
    from ksql.exec.codegen.folding import GroupFolding, PaneFolding
    from ksql.exec.codegen.keying import Keying
    from ksql.exec.dataflow.reading import DecodedBatch, Reader
    from ksql.exec.dataflow.stage_inputs import KeyedInput
    from ksql.exec.dataflow.timestamps import FutureTimestamps
    from ksql.exec.operators.commit_intervals import CommitIntervals

Item = TypeVar("Item")
_new = tuple.__new__


class KeyedRows(NamedTuple):
    """Key columns, then what is carried, of records that are no deletions; None for no row.

    ``sequence_keys`` are those of the records that Kafka has, see ``operators.order``.
    """

    rows: list[Row | None]
    times: Sequence[int]
    partitions: Sequence[int]
    offsets: Sequence[int]
    sequence_keys: Sequence[int]


class SourceIngest:
    """A source of a program with stages: its reader, its topic's number, its way to a stage."""

    def __init__(
        self,
        reader: Reader,
        topic: int,
        stage_input: KeyedInput,
        keying: Keying | None = None,
        folding: GroupFolding | None = None,
        paning: PaneFolding | None = None,
    ) -> None:
        self.reader = reader
        self.stage_input = stage_input
        self.keying = keying
        self.folding = folding
        self.paning = paning
        self.topic = topic

    def keyed(
        self,
        batch: RawBatch,
        sequence_keys: SequenceKeys,
        log: LogError,
        ahead: FutureTimestamps | None,
    ) -> KeyedBatch | Sequence[Record]:
        """Return the batch's records on their way to the stage."""
        fast = None if self.keying is None else self.keying.keyed(batch, sequence_keys, log, ahead)
        return self.keyed_stepwise(batch, sequence_keys, log, ahead) if fast is None else fast

    def keyed_stepwise(
        self,
        batch: RawBatch,
        sequence_keys: SequenceKeys,
        log: LogError,
        ahead: FutureTimestamps | None,
    ) -> Sequence[Record]:
        """Return the same, each step by itself."""
        stage_input, arrivals = self.stage_input, self.reader.read(batch, log)
        arrivals.sequence_keys = sequence_keys.of(
            stage_input.port, picked(batch.partitions, arrivals.places), arrivals.times
        )
        if stage_input.table:
            return self._keyed_changes(arrivals, batch, log)
        whole, arrivals = arrivals, arrivals.alive()
        rows = stage_input.projected(arrivals.rows, log)
        if not all(rows):
            arrivals = arrivals.kept(rows)
        if ahead is not None:
            moving = whole if stage_input.ticks else arrivals
            ahead.see(batch, moving.times, moving.places)
        width, places = stage_input.width, arrivals.places
        keys = [row[:width] for row in rows if row]
        packed = list(map(pack, keys))
        partitions = picked(batch.partitions, places)
        lanes: Iterable[int] = repeat(0)
        if stage_input.lanes:
            lanes = stage_input.lanes_of(packed, keys, partitions)
        if stage_input.ticks and len(places) < len(whole.places):
            ticks = self._ticks(whole, set(places), batch, log)
        else:
            ticks = []
        columns = zip(
            repeat(stage_input.port),
            packed,
            [row[width:] for row in rows if row],
            arrivals.times,
            repeat(self.topic),
            partitions,
            picked(batch.offsets, places),
            picked(batch.headers, places) if batch.headers else repeat(None),
            repeat(None),
            arrivals.sequence_keys,
            lanes,
        )
        # the tuple's own constructor: the records are built without a Python-level call each
        return [*map(_new, repeat(Record), columns), *ticks]

    def _ticks(
        self, arrivals: DecodedBatch, passed: set[int], batch: RawBatch, log: LogError
    ) -> list[Record]:
        """Return records without row for the dropped ones: what is late depends on their times."""
        stage_input, out = self.stage_input, []
        for (i, row, time, _, _), sequence_key in zip(
            arrivals.each(), arrivals.sequence_keys, strict=True
        ):
            if i not in passed:
                origin = self.topic, batch.partitions[i], batch.offsets[i]
                key = stage_input.tick_key(row, log)
                out.append(
                    Record(stage_input.port, key, None, time, *origin, sequence_key=sequence_key)
                )
        return (
            stage_input.laned(out, [record.partition for record in out])
            if stage_input.lanes
            else out
        )

    def placed(self, batch: RawBatch, sequence_keys: SequenceKeys, log: LogError) -> KeyedRows:
        """Return key columns, then what is carried, of records that are no deletions.

        None for a row that goes nowhere. The other columns put the records in order.
        """
        stage_input, arrivals = self.stage_input, self.reader.read(batch, log)
        arrivals.sequence_keys = sequence_keys.of(
            stage_input.port, picked(batch.partitions, arrivals.places), arrivals.times
        )
        arrivals = arrivals.alive()
        return KeyedRows(
            stage_input.projected(arrivals.rows, log),
            arrivals.times,
            picked(batch.partitions, arrivals.places),
            picked(batch.offsets, arrivals.places),
            arrivals.sequence_keys,
        )

    def _keyed_changes(
        self, arrivals: DecodedBatch, batch: RawBatch, log: LogError
    ) -> list[Record]:
        """Return a table's records, deletions among them, in their order."""
        stage_input, port, topic = self.stage_input, self.stage_input.port, self.topic
        headers, partitions, offsets = batch.headers, batch.partitions, batch.offsets
        out = []
        turned = zip(arrivals.each(), arrivals.sequence_keys, strict=True)
        for (i, row, time, keyless, dead), sequence_key in turned:
            if keyless:
                log("source", "a table's record has no key", row)
                continue
            keyed = stage_input.keyed(row, dead, log)
            if keyed is not None:
                header = headers[i] if headers else None
                origin = topic, partitions[i], offsets[i]
                out.append(Record(port, *keyed, time, *origin, header, sequence_key=sequence_key))
        return (
            stage_input.laned(out, [record.partition for record in out])
            if stage_input.lanes
            else out
        )


class KeyedIngest:
    """Records leave as they come."""

    def __init__(
        self, sources: Mapping[str, Sequence[SourceIngest]], ahead: FutureTimestamps | None = None
    ) -> None:
        self.sources = sources
        self._sequence_keys = SequenceKeys()
        self._ahead = ahead

    def add(self, batch: RawBatch, log: LogError) -> Parts:
        return Parts(
            [
                source.keyed(part, self._sequence_keys, log, self._ahead)
                for topic, part in by_topic(batch)
                for source in self.sources.get(topic, ())
            ]
        )

    def finish(self) -> list[Record]:
        """Return nothing: nothing is held back."""
        return []


class CombinedIngest:
    """Records are folded into their groups' states; these leave at the end."""

    def __init__(
        self,
        sources: Mapping[str, Sequence[SourceIngest]],
        combine: Combine,
        intervals: CommitIntervals,
    ) -> None:
        self.sources = sources
        self._combiner = Combiner(combine, intervals)
        self._sequence_keys = SequenceKeys()

    def add(self, batch: RawBatch, log: LogError) -> list[Record]:
        """Fold a batch; nothing leaves yet."""
        for topic, part in by_topic(batch):
            for source in self.sources.get(topic, ()):
                folding = source.folding
                decoded = None if folding is None else folding.decoded(part, log)
                if folding is None or decoded is None:
                    placed = source.placed(part, self._sequence_keys, log)
                    self._combiner.add(placed.rows, placed.times, placed.sequence_keys, log)
                    continue
                sequence_keys = self._sequence_keys.of(
                    source.stage_input.port, decoded.partitions, decoded.times
                )
                folding.fold(decoded, sequence_keys, self._combiner.states, log)
        return []

    def finish(self) -> Parts:
        """Return a record per group and commit interval."""
        return Parts([self._combiner.finish()])


def picked(column: Sequence[Item], places: Sequence[int]) -> Sequence[Item]:
    """Return the column at those places; itself if these are all."""
    return column if len(places) == len(column) else [column[index] for index in places]


def by_topic(batch: RawBatch) -> Iterable[tuple[str, RawBatch]]:
    """Return the batch cut by topic; most batches have one."""
    names = set(batch.topics)
    if len(names) <= 1:
        return [(name, batch) for name in names]
    return [(name, _part(batch, name)) for name in sorted(names)]


def _part(batch: RawBatch, name: str) -> RawBatch:
    places = [index for index, topic in enumerate(batch.topics) if topic == name]
    return RawBatch(
        picked(batch.topics, places),
        picked(batch.partitions, places),
        picked(batch.offsets, places),
        picked(batch.timestamps, places),
        picked(batch.keys, places),
        picked(batch.values, places),
        None if batch.headers is None else picked(batch.headers, places),
    )
