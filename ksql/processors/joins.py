"""A stream joined with a table: each stream record meets the table's row of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors.sides import Ending, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.processors.base import LogError, Record, Store

_ROWS = b"t"


@dataclass(frozen=True, slots=True)
class JoinProcessor:
    """Out comes the stream's row, then the table's, then the ending.

    ``outer`` keeps stream records that find no row, with NULLs for the table's. Only stream records
    cause results; their timestamps and headers are kept.
    Source: docs/sql/joins.md#stream-with-table.
    """

    outer: bool
    table: Side
    ending: Ending

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Join the stream's records, keep the table's."""
        store.load(_ROWS, {record.key for record in records})
        nothing, port = self.table.nothing, self.table.port
        row_of, ending_of = self.table.row, self.ending.of
        for record in records:
            if record.port == port:
                self._remember(record, store)
                continue
            row = record.row
            if row is None:
                continue
            found = store.get(_ROWS, record.key)
            if found is not None:
                right = row_of(found)
            elif self.outer:
                right = nothing
            else:
                continue
            yield record._replace(row=(*row, *right, *ending_of(record.key, record.timestamp)))

    def _remember(self, record: Record, store: Store) -> None:
        if record.row is None:
            store.delete(_ROWS, record.key)
        else:
            store.put(_ROWS, record.key, self.table.stored(record.row))
