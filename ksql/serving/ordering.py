"""ORDER BY of a pull query, sorted in memory; rows of too many bytes are refused.

With LIMIT no more rows are kept than are asked for; without it all are.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.core import KsqlError
from ksql.core.types import SqlType, model
from ksql.exec.operators import estimate
from ksql.views import CHUNK_ROWS, Chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.core import Row

SETTING = "ksql.query.pull.state.max.bytes"
_ROW_BYTES = 120
_SAMPLED = 8


class TooManyRows(KsqlError):
    """A pull query that would keep more rows in memory than it may."""

    def __init__(self, clause: str, limit: int) -> None:
        super().__init__(
            f"The rows of this pull query's {clause} take more than {limit} bytes of memory",
            detail="They are kept in the server until the last one has been read.",
            hint=f"Ask for fewer of them (WHERE, LIMIT), or raise {SETTING}.",
        )


class ByteBudget:
    """Counts the bytes that a query's rows take."""

    def __init__(self, clause: str, limit: int) -> None:
        self._clause = clause
        self._limit = limit
        self._bytes = 0

    def take(self, size: int) -> None:
        """Count bytes that are kept; less than 0 gives some back.

        Raises: TooManyRows.
        """
        self._bytes += size
        if self._bytes > self._limit:
            raise TooManyRows(self._clause, self._limit)


@dataclass(frozen=True, slots=True)
class SortKey:
    """A place in the row by which rows are put in order; NULL is the greatest value."""

    place: int
    type: SqlType
    descending: bool = False
    nulls_first: bool = False


def orderable(type_: SqlType) -> bool:
    """Return whether values of the type have an order."""
    return not isinstance(type_, model.Array | model.Map | model.Struct)


def in_order(
    chunks: Chunks, keys: Sequence[SortKey], most_rows: int | None, room: ByteBudget
) -> Iterator[list[Row]]:
    """Yield the rows in order, the first ``most_rows`` of them; equal rows stay as they come.

    While rows are still read the chunks are empty.
    """
    key = _key_of(keys)
    kept: _AllRows | _FirstRows = (
        _AllRows(key, room) if most_rows is None else _FirstRows(key, most_rows, room)
    )
    for chunk in chunks:
        kept.add(chunk)
        yield []
    rows = kept.sorted()
    while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
        yield chunk


class _AllRows:
    """Keeps all rows."""

    def __init__(self, key: Callable[[Row], Any], room: ByteBudget) -> None:
        self._key = key
        self._room = room
        self._rows: list[Row] = []

    def add(self, chunk: Sequence[Row]) -> None:
        sample = chunk[::_SAMPLED]
        if sample:
            size = sum(map(estimate, sample)) * len(chunk) // len(sample)
            self._room.take(size + _ROW_BYTES * len(chunk))
        self._rows += chunk

    def sorted(self) -> Iterator[Row]:
        self._rows.sort(key=self._key)
        return iter(self._rows)


class _FirstRows:
    """Keeps the first rows of the order in a heap, the last of them on top."""

    def __init__(self, key: Callable[[Row], Any], most_rows: int, room: ByteBudget) -> None:
        self._key = key
        self._most_rows = most_rows
        self._room = room
        self._heap: list[tuple[_DescendingKey, int, Row]] = []
        self._seen = 0

    def add(self, chunk: Sequence[Row]) -> None:
        if not self._most_rows:
            return
        for row in chunk:
            self._seen += 1  # no two entries are equal, so rows are never compared
            entry = (_DescendingKey(self._key(row)), -self._seen, row)
            if len(self._heap) < self._most_rows:
                self._room.take(_ROW_BYTES + estimate(row))
                heapq.heappush(self._heap, entry)
            elif entry > self._heap[0]:
                gone = heapq.heappushpop(self._heap, entry)
                self._room.take(estimate(row) - estimate(gone[2]))

    def sorted(self) -> Iterator[Row]:
        return (row for _, _, row in sorted(self._heap, reverse=True))


def _key_of(keys: Sequence[SortKey]) -> Callable[[Row], Any]:
    parts = [_part(key) for key in keys]
    if len(parts) == 1:
        return parts[0]
    return lambda row: [part(row) for part in parts]


def _part(key: SortKey) -> Callable[[Row], Any]:
    """Return the place's value, comparable with that of any other row."""
    column = key.place
    null, there = (0, 1) if key.nulls_first else (1, 0)
    if key.type == model.DOUBLE:
        if key.descending:
            return lambda row: _nan_first(row[column], null, there)
        return lambda row: _nan_last(row[column], null, there)
    if not key.descending:
        return lambda row: (null, 0) if row[column] is None else (there, row[column])
    return lambda row: (null, 0) if row[column] is None else (there, _DescendingKey(row[column]))


def _nan_last(value: float | None, null: int, there: int) -> tuple[int, int, float]:
    """Return the place in Java's order of doubles: NaN after all others."""
    if value is None:
        return null, 0, 0.0
    return (there, 1, 0.0) if math.isnan(value) else (there, 0, value)


def _nan_first(value: float | None, null: int, there: int) -> tuple[int, int, float]:
    if value is None:
        return null, 0, 0.0
    return (there, 0, 0.0) if math.isnan(value) else (there, 1, -value)


class _DescendingKey:
    """A value that is less than another if it is greater."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _DescendingKey) -> bool:
        return bool(other.value < self.value)

    def __gt__(self, other: _DescendingKey) -> bool:
        return bool(other.value > self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DescendingKey) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)
