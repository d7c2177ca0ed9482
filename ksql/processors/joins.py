"""A stream joined with a table: each stream record meets the table's row of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors.table import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.processors.base import LogError, Record, Store

_ROWS = b"t"


@dataclass(frozen=True, slots=True)
class JoinProcessor:
    """Out comes the stream's row, then the table's, then the time.

    ``outer`` keeps stream records that find no row, with ``right_width`` NULLs. Only stream records
    cause results; their timestamps and headers are kept. The table's records come in at the port
    ``table``.
    Source: docs/sql/joins.md#stream-with-table.
    """

    outer: bool
    right_width: int
    table: int

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Join the stream's records, keep the table's."""
        store.load(_ROWS, {record.key for record in records})
        nothing = (None,) * self.right_width
        for record in records:
            if record.port == self.table:
                self._remember(record, store)
                continue
            row = record.row
            if row is None:
                continue
            found = store.get(_ROWS, record.key)
            if found is not None:
                right = fitted(found, self.right_width)
            elif self.outer:
                right = nothing
            else:
                continue
            yield record._replace(row=(*row, *right, record.timestamp))

    @staticmethod
    def _remember(record: Record, store: Store) -> None:
        if record.row is None:
            store.delete(_ROWS, record.key)
        else:
            store.put(_ROWS, record.key, list(record.row))
