"""The source of a table whose consumers need to know which row a change replaces (KIP-904)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.exec.operators.base import LogError, Record, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core import Row

_ROWS = b"s"
_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class TableProcessor:
    """Keeps the table's rows; adds to every change the row before it.

    Stored rows that are shorter than ``width`` were written before the table got more columns. The
    longer ones are from a plan that read more columns and was rolled back. The deletion of an
    unknown key passes without an old row: who does not know the old values must still see it.
    """

    width: int

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Remember the rows."""
        store.load(_ROWS, {record.key for record in records})
        get, put, width = store.get, store.put, self.width
        for record in records:
            port, key, row, time, topic, partition, offset, headers, _, sequence_key, lane = record
            stored = get(_ROWS, key)
            old = None if stored is None else fitted(stored, width)
            if row is None:
                store.delete(_ROWS, key)
            else:
                put(_ROWS, key, list(row))
            parts = port, key, row, time, topic, partition, offset, headers, old, sequence_key, lane
            # the tuple's own constructor: every change of a table passes here
            yield _new(Record, parts)


def fitted(stored: Sequence[Any], width: int) -> Row:
    """Return a stored row in the width that the plan knows: columns are only ever appended."""
    missing = width - len(stored)
    if missing == 0:
        return tuple(stored)
    return (*stored, *(None,) * missing) if missing > 0 else tuple(stored[:width])
