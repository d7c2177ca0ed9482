"""The source of a table whose consumers need to know which row a change replaces (KIP-904)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.base.records import Row
    from ksql.processors.base import LogError, Record, Store

_ROWS = b"s"


@dataclass(frozen=True, slots=True)
class TableProcessor:
    """Keeps the table's rows; adds to every change the row before it.

    Stored rows that are shorter than ``width`` were written before the table got more columns; the
    longer ones by a plan that read more of them and was taken back. The
    deletion of an unknown key passes without an old row: who does not know the old values must
    still see it.
    """

    width: int

    def process(self, records: Sequence[Record], store: Store, log: LogError) -> Iterator[Record]:
        """Remember the rows."""
        store.load(_ROWS, {record.key for record in records})
        for record in records:
            stored = store.get(_ROWS, record.key)
            old = None if stored is None else fitted(stored, self.width)
            if record.row is None:
                store.delete(_ROWS, record.key)
            else:
                store.put(_ROWS, record.key, list(record.row))
            yield record._replace(old=old)


def fitted(stored: Sequence[Any], width: int) -> Row:
    """A stored row in the width that the plan knows: columns are only ever appended."""
    missing = width - len(stored)
    if missing == 0:
        return tuple(stored)
    return (*stored, *(None,) * missing) if missing > 0 else tuple(stored[:width])
