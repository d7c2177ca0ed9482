"""A stream joined with a table: each stream record meets the table's row of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.exec.operators.base import Paused, Record
from ksql.exec.operators.joining.join_layout import Ending, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core.records import Row
    from ksql.exec.operators.base import LogError, Steps, Store

_ROWS = b"t"
_key = itemgetter(1)
_new = tuple.__new__


class Rows(dict[bytes, "Row | None"]):
    """The table's rows by key during one call, None where there is none.

    A row is taken from the store once, however many records meet it. Changes count at once, and are
    stored at the end, the last one of each key.
    """

    def __init__(self, table: Side, store: Store) -> None:
        super().__init__()
        self._table = table
        self._store = store
        self._changed: dict[bytes, None] = {}

    def load(self, records: Sequence[Record]) -> None:
        """Fetch the rows of all keys at the first look."""
        self._store.load(_ROWS, set(map(_key, records)))

    def __missing__(self, key: bytes) -> Row | None:
        stored = self._store.get(_ROWS, key)
        row = self[key] = None if stored is None else self._table.row(stored)
        return row

    def change(self, key: bytes, row: Row | None) -> None:
        """Set another row, or none, under the key."""
        self[key] = row
        self._changed[key] = None

    def store_changes(self) -> None:
        """Store what has changed."""
        for key in self._changed:
            row = self[key]
            if row is None:
                self._store.delete(_ROWS, key)
            else:
                self._store.put(_ROWS, key, self._table.stored(row))
        self._changed.clear()


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
        rows = Rows(self.table, store)
        rows.load(records)
        yield
        return self._joined(records, rows)

    def joined(self, record: Record, right: Row | None) -> Row:
        """Return the row of a stream's record with that of the table."""
        joined = self.table.nothing if right is None else right
        return (*(record.row or ()), *joined, *self.ending.of(record.key, record.timestamp))

    def _joined(self, records: Sequence[Record], rows: Rows) -> Iterator[Record]:
        nothing, port = self.table.nothing, self.table.port
        ending_of, outer = self.ending.of, self.outer
        for record in records:
            way, key, row, time, topic, partition, offset, headers, old, sequence_key, lane = record
            if way == port:
                rows.change(key, row)
                continue
            if row is None:
                continue
            right = rows[key]
            if right is None:
                if not outer:
                    continue
                right = nothing
            joined = (*row, *right, *ending_of(key, time))
            values = (
                way,
                key,
                joined,
                time,
                topic,
                partition,
                offset,
                headers,
                old,
                sequence_key,
                lane,
            )
            # the tuple's own constructor: every record of the stream passes here
            yield _new(Record, values)
        rows.store_changes()
