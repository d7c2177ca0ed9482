"""A stream joined with a table: each stream record meets the table's row of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.processors.table import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.processors.base import LogError, Record, Store

LEFT, RIGHT = 0, 1
_ROWS = b"t"


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Port 0 is the stream, port 1 the table; out comes the stream's row, then the table's.

    ``outer`` keeps stream records that find no row, with ``right_width`` NULLs. Only stream records
    cause results; their timestamps and headers are kept.
    Source: docs/sql/joins.md#stream-with-table.
    """

    outer: bool
    right_width: int
    port: int = 0

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Join the stream's records, keep the table's."""
        store.load(_ROWS, {record.key for record in records})
        nothing = (None,) * self.right_width
        for record in records:
            if record.port == RIGHT:
                self._remember(record, store)
                continue
            row = record.row
            if row is None:
                continue
            found = store.get(_ROWS, record.key)
            if found is not None:
                yield record._replace(port=self.port, row=(*row, *fitted(found, self.right_width)))
            elif self.outer:
                yield record._replace(port=self.port, row=(*row, *nothing))

    @staticmethod
    def _remember(record: Record, store: Store) -> None:
        if record.row is None:
            store.delete(_ROWS, record.key)
        else:
            store.put(_ROWS, record.key, list(record.row))
