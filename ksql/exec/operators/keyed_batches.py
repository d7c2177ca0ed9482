"""Records on their way to a stage, column by column.

A ``Record`` of each would be made and taken apart at both ends of an exchange, and a third time in
the stage's loop. Iterating over them gives the records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, overload

import numpy as np

from ksql.exec.operators.base import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]

_LEAST_SHARE: Final = 8
"""So many records of a stream must there be for each of a table's, to be taken by column."""
_new = tuple.__new__


def longs(values: Sequence[int]) -> Longs:
    """Return 64-bit integers as an array."""
    return np.asarray(array("q", values))


@dataclass(frozen=True, slots=True)
class KeyedBatch:
    """Records of one port, topic and partition, without headers and old rows.

    ``keys`` are packed, ``lanes`` are the lane of all records or one for each, ``columns`` are what
    the records carry. ``states``, if there are any, are those of records that stand for several.
    These carry nothing; where all are such there are no columns.
    """

    port: int
    topic: int
    partition: int
    lanes: int | Sequence[int]
    keys: Sequence[bytes]
    times: Longs
    sequence_keys: Longs
    offsets: Longs
    columns: Sequence[Sequence[Any]]
    states: Sequence[tuple[Any, ...] | None] | None = None

    @classmethod
    def of_rows(
        cls, head: tuple[int, int, int], lane: int | None, rows: Sequence[tuple[Any, ...]]
    ) -> KeyedBatch:
        """Return the batch of rows: packed key, lane, time, sequence key, offset, what is carried.

        ``head`` is as below; ``lane`` is that of all rows, None if they have several.
        """
        if not rows:
            return cls(*head, lane or 0, (), longs(()), longs(()), longs(()), ())
        keys, lanes, times, sequence_keys, offsets, *columns = zip(*rows, strict=True)
        places = longs(times), longs(sequence_keys), longs(offsets)
        return cls(*head, lanes if lane is None else lane, keys, *places, columns)

    @classmethod
    def joined(cls, parts: Sequence[KeyedBatch]) -> KeyedBatch:
        """Return the records of all parts, in their order, as those of the first one's partition.

        The parts carry as many columns.
        """
        first = parts[0]
        if len(parts) == 1:
            return first
        lanes: int | Sequence[int] = first.lanes
        if not isinstance(lanes, int) or any(part.lanes != lanes for part in parts):
            lanes = list(chain.from_iterable(part.lanes_of_each() for part in parts))
        width = max(len(part.columns) for part in parts)
        columns = zip(
            *(part.columns or [[None] * len(part)] * width for part in parts), strict=True
        )
        states = None
        if any(part.states for part in parts):
            states = list(chain.from_iterable(part.states or [None] * len(part) for part in parts))
        return cls(
            *first.head,
            lanes,
            list(chain.from_iterable(part.keys for part in parts)),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.sequence_keys for part in parts]),
            np.concatenate([part.offsets for part in parts]),
            [list(chain.from_iterable(some)) for some in columns],
            states,
        )

    @property
    def head(self) -> tuple[int, int, int]:
        """Return the parts that all records have alike."""
        return self.port, self.topic, self.partition

    def by_lane(self) -> Iterator[tuple[int, KeyedBatch]]:
        """Return the records of each lane."""
        if isinstance(self.lanes, int):
            return iter([(self.lanes, self)])
        lanes = np.asarray(self.lanes)
        some = ((lane, self.taken(np.flatnonzero(lanes == lane))) for lane in set(self.lanes))
        return ((lane, replace(batch, lanes=lane)) for lane, batch in some)

    def lanes_of_each(self) -> Sequence[int]:
        """Return the lane of each record."""
        return [self.lanes] * len(self.keys) if isinstance(self.lanes, int) else self.lanes

    def cut(self, begin: int, end: int) -> KeyedBatch:
        """Return the records from one place to another."""
        if begin == 0 and end >= len(self.keys):
            return self
        return self._picked(itemgetter(slice(begin, end)))

    def taken(self, places: NDArray[np.intp]) -> KeyedBatch:
        """Return the records at those places, of which there is at least one."""
        if len(places) == 1:  # of one alone an itemgetter returns the item
            return self._picked(itemgetter(slice(int(places[0]), int(places[0]) + 1)))
        of = itemgetter(*places.tolist())
        return self._picked(lambda column: column[places] if _is_array(column) else of(column))

    def _picked(self, pick: Any) -> KeyedBatch:
        return replace(
            self,
            lanes=self.lanes if isinstance(self.lanes, int) else pick(self.lanes),
            keys=pick(self.keys),
            times=pick(self.times),
            sequence_keys=pick(self.sequence_keys),
            offsets=pick(self.offsets),
            columns=[pick(column) for column in self.columns],
            states=None if self.states is None else pick(self.states),
        )

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.keys)

    def __iter__(self) -> Iterator[Record]:
        """Make the records."""
        rows: Iterable[tuple[Any, ...] | None] = repeat(())
        if self.columns:
            rows = zip(*self.columns, strict=True)
        olds: Iterable[tuple[Any, ...] | None] = repeat(None)
        if self.states is not None:
            olds, of_each = self.states, zip(rows, self.states)  # noqa: B905 - rows may repeat
            rows = [row if state is None else None for row, state in of_each]
        columns = zip(
            repeat(self.port),
            self.keys,
            rows,
            self.times.tolist(),
            repeat(self.topic),
            repeat(self.partition),
            self.offsets.tolist(),
            repeat(None),
            olds,
            self.sequence_keys.tolist(),
            self.lanes_of_each(),
        )
        # the tuple's own constructor: the records are built without a Python-level call each
        return map(_new, repeat(Record), columns)


def _is_array(column: object) -> bool:
    return isinstance(column, np.ndarray)


@dataclass(frozen=True, slots=True)
class Parts:
    """Records in several parts, one after the other."""

    parts: Sequence[KeyedBatch | Sequence[Record]]

    def __iter__(self) -> Iterator[Record]:
        for part in self.parts:
            yield from part


def parts_of(records: Iterable[Record]) -> Sequence[KeyedBatch | Iterable[Record]]:
    """Return the parts of records, if they have any; else the whole."""
    return records.parts if isinstance(records, Parts) else (records,)


class Queues(Sequence[Record]):
    """Records of one (topic, partition) after the other, each by offset; made when asked for."""

    __slots__ = ("_records", "parts")

    def __init__(self, parts: Sequence[KeyedBatch | Sequence[Record]]) -> None:
        self.parts = parts
        self._records: list[Record] | None = None

    def _whole(self) -> list[Record]:
        if self._records is None:
            self._records = list(chain.from_iterable(self.parts))
        return self._records

    def __len__(self) -> int:
        """Return the number of records."""
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """Return a record, or some."""
        return self._whole()[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._whole())

    def __eq__(self, other: object) -> bool:
        """Return whether these are the same records in this order."""
        return isinstance(other, Sequence) and self._whole() == list(other)

    __hash__ = None  # type: ignore[assignment] # as of a list


class StreamColumns(NamedTuple):
    """A stream's records in processing order, column by column.

    ``others`` are records of another port, each with the number of the stream's before it.
    """

    keys: Sequence[bytes]
    times: Sequence[int]
    sequence_keys: Longs
    columns: Sequence[Sequence[Any]]
    states: Sequence[tuple[Any, ...] | None] | None = None
    others: Sequence[tuple[int, Record]] = ()


def columns_in_order(records: Queues, other: int | None = None) -> StreamColumns | None:
    """Return the records in the order of ``in_order``; None if not all is ordinary.

    ``other`` is the port of those that are to be apart. There must be few of them.
    """
    flags = [other is not None and _port(part) == other for part in records.parts]
    stream = [part for part, flag in zip(records.parts, flags, strict=True) if not flag]
    if not all(isinstance(part, KeyedBatch) for part in stream):
        return None
    batches = cast("list[KeyedBatch]", stream)
    widths = {len(batch.columns) for batch in batches if batch.columns or not batch.states}
    if len({batch.port for batch in batches}) != 1 or len(widths) > 1:
        return None
    whole = KeyedBatch.joined(batches)
    if not any(flags):
        sequence_keys = whole.sequence_keys
        if (sequence_keys[1:] < sequence_keys[:-1]).any():
            whole = whole.taken(np.argsort(sequence_keys, kind="stable"))
        return _columns(whole)
    if (len(records) - len(whole)) * _LEAST_SHARE > len(whole):
        return None
    return _interleaved(records.parts, flags, whole)


def _port(part: KeyedBatch | Sequence[Record]) -> int | None:
    """Return the port of all records of a part; None: they have several."""
    if isinstance(part, KeyedBatch):
        return part.port
    ports = {record.port for record in part}
    return ports.pop() if len(ports) == 1 else None


def _interleaved(
    parts: Sequence[KeyedBatch | Sequence[Record]], flags: Sequence[bool], stream: KeyedBatch
) -> StreamColumns:
    """Return the stream's columns in order; ``flags`` say which parts are others."""
    sequence_keys = np.concatenate([_sequence_keys(part) for part in parts])
    order = np.argsort(sequence_keys, kind="stable")
    other = np.repeat(np.array(flags), [len(part) for part in parts])
    numbers = np.where(other, np.cumsum(other), np.cumsum(~other)) - 1  # each among its kind
    others = [record for part, flag in zip(parts, flags, strict=True) if flag for record in part]
    other = other[order]
    before = np.cumsum(~other)[other].tolist()
    some = [others[number] for number in numbers[order[other]].tolist()]
    whole = stream.taken(numbers[order[~other]])
    return _columns(whole, list(zip(before, some, strict=True)))


def _columns(batch: KeyedBatch, others: Sequence[tuple[int, Record]] = ()) -> StreamColumns:
    times = batch.times.tolist()
    return StreamColumns(
        batch.keys, times, batch.sequence_keys, batch.columns, batch.states, others
    )


def _sequence_keys(part: KeyedBatch | Sequence[Record]) -> Longs:
    if isinstance(part, KeyedBatch):
        return part.sequence_keys
    return longs([record.sequence_key for record in part])
