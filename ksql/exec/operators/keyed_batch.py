"""Records of one partition on their way to a stage, with nothing in them that all have alike.

An exchange has them column by column: a ``Record`` of each would be made and taken apart at once.
Iterating over it gives the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.exec.operators.base import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class KeyedBatch:
    """Records of one port, topic and partition, without headers and old rows.

    Each of ``rows`` is packed key, lane, time, sequence key and offset, then what the record
    carries. ``lane`` is that of all rows, None if they have several.
    """

    port: int
    topic: int
    partition: int
    lane: int | None
    rows: Sequence[tuple[Any, ...]]

    @property
    def head(self) -> tuple[int, int, int]:
        """Return the parts that all records have alike."""
        return self.port, self.topic, self.partition

    def __iter__(self) -> Iterator[Record]:
        """Make the records."""
        port, topic, partition = self.head
        for key, lane, time, sequence_key, offset, *carried in self.rows:
            origin = time, topic, partition, offset, None, None, sequence_key, lane
            yield _new(Record, (port, key, tuple(carried), *origin))


@dataclass(frozen=True, slots=True)
class Parts:
    """Records in several parts, one after the other."""

    parts: Sequence[KeyedBatch | Sequence[Record]]

    def __iter__(self) -> Iterator[Record]:
        """Return all records."""
        for part in self.parts:
            yield from part


def parts_of(records: Iterable[Record]) -> Sequence[KeyedBatch | Iterable[Record]]:
    """Return the parts of records, if they have any; else the whole."""
    return records.parts if isinstance(records, Parts) else (records,)
