"""The source of a table whose consumers need to know which row a change replaces (KIP-904)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ksql.processors.base import LogError, Record, Store
from ksql.processors.order import in_order

_ROWS = b"s"


@dataclass(frozen=True, slots=True)
class TableSource:
    """Keeps the table's rows; adds to every change the row before it."""

    port: int = 0

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Remember the rows; deletions of unknown keys are dropped."""
        store.load(_ROWS, {record.key for record in records})
        for record in in_order(records):
            stored = store.get(_ROWS, record.key)
            old = None if stored is None else tuple(stored)
            if record.row is None:
                if old is None:
                    continue
                store.delete(_ROWS, record.key)
            else:
                store.put(_ROWS, record.key, list(record.row))
            yield record._replace(port=self.port, old=old)
