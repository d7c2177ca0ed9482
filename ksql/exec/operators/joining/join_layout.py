"""The sides of a join: how their rows are stored, and what follows them in a joined row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.exec.operators import keys
from ksql.exec.operators.table import fitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.core import Row
    from ksql.exec.operators.base import Record, Store


class TimedRow(NamedTuple):
    """A side's row with its time."""

    time: int
    row: Row

    @classmethod
    def of(cls, record: Record) -> TimedRow | None:
        """Return the row of a record with its time; None if it is a deletion."""
        return None if record.row is None else cls(record.timestamp, record.row)


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of one source, or of several that were joined before.

    ``port`` is where they come in; ``parts`` are the lengths of their stretches of columns, one for
    each source. A source that gets more columns grows at the end of its own stretch. So rows of
    several sources are stored stretch by stretch, those of one as they are.
    """

    port: int
    parts: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(self.parts)

    @property
    def nothing(self) -> Row:
        """The columns of a side that has no row."""
        return (None,) * self.width

    def stored(self, row: Row) -> Sequence[Any]:
        if len(self.parts) == 1:
            return row
        columns, start = [], 0
        for length in self.parts:
            columns.append(row[start : start + length])
            start += length
        return columns

    def row(self, stored: Sequence[Any]) -> Row:
        """Return the stored row in the width that the plan knows."""
        if len(self.parts) == 1:
            return fitted(stored, self.parts[0])
        whole: list[Any] = []
        for part, length in zip(stored, self.parts, strict=True):
            whole += fitted(part, length)
        return tuple(whole)

    def rows(self, stored: Iterable[Sequence[Any]]) -> list[Row]:
        if len(self.parts) > 1:
            return list(map(self.row, stored))
        (width,) = self.parts
        return [tuple(row) if len(row) == width else fitted(row, width) for row in stored]

    def kept(self, store: Store, space: bytes, key: bytes) -> TimedRow | None:
        """Return the row that ``keep`` has stored under a key."""
        stored: list[Any] | None = store.get(space, key)
        return None if stored is None else TimedRow(stored[0], self.row(stored[1]))

    def keep(self, store: Store, space: bytes, key: bytes, kept: TimedRow | None) -> None:
        """Store a row with its time under a key, or forget the one before it."""
        if kept is None:
            store.delete(space, key)
        else:
            store.put(space, key, [kept.time, self.stored(kept.row)])


@dataclass(frozen=True, slots=True)
class Ending:
    """The last columns of a joined row.

    Its key, where no column of the sides has it; the bounds of its window, where the key is
    windowed; its time.
    """

    key: bool = False
    windowed: bool = False

    def of(self, key: bytes, timestamp: int) -> Row:
        """Return the columns for a packed key and a time."""
        if not self.key and not self.windowed:
            return (timestamp,)
        values = keys.unpack(key)
        return (*values[0 if self.key else 1 : 3 if self.windowed else 1], timestamp)
