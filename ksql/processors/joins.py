"""A stream joined with a table: each stream record meets the table's row of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors.base import Paused, Record
from ksql.processors.sides import Ending, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.processors.base import LogError, Steps, Store

_ROWS = b"t"
_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class JoinProcessor(Paused):
    """Out comes the stream's row, then the table's, then the ending.

    ``outer`` keeps stream records that find no row, with NULLs for the table's. Only stream records
    cause results; their timestamps and headers are kept.
    Source: docs/sql/joins.md#stream-with-table.
    """

    outer: bool
    table: Side
    ending: Ending

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Join the stream's records, keep the table's."""
        store.load(_ROWS, {record.key for record in records})
        yield
        return self._joined(records, store)

    def _joined(self, records: Sequence[Record], store: Store) -> Iterator[Record]:
        nothing, port = self.table.nothing, self.table.port
        row_of, ending_of, get = self.table.row, self.ending.of, store.get
        for record in records:
            way, key, row, time, topic, partition, offset, headers, old, turn, lane = record
            if way == port:
                self._remember(record, store)
                continue
            if row is None:
                continue
            found = get(_ROWS, key)
            if found is not None:
                right = row_of(found)
            elif self.outer:
                right = nothing
            else:
                continue
            joined = (*row, *right, *ending_of(key, time))
            values = (way, key, joined, time, topic, partition, offset, headers, old, turn, lane)
            # the tuple's own constructor: every record of the stream passes here
            yield _new(Record, values)

    def _remember(self, record: Record, store: Store) -> None:
        if record.row is None:
            store.delete(_ROWS, record.key)
        else:
            store.put(_ROWS, record.key, self.table.stored(record.row))
