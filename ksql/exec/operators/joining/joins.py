"""Stream-table joins and joins of tables on primary keys: each record looks up the other row.

When two tables are joined on their primary keys, each change of one meets the other's row of that
moment.

Rows in: the columns of a side. Rows out: the left side's, the right side's, the ``Ending``; ``old``
is the joined row that this one replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.exec.operators.base import LogError, PausingProcessor, Record, Steps, Store
from ksql.exec.operators.joining.join_layout import Ending, Side, TimedRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ksql.core import Row


_ROWS = b"t"
_key = itemgetter(1)
_new = tuple.__new__


class JoinTable(dict[bytes, "Row | None"]):
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

    def take(self, keys: Collection[bytes]) -> None:
        """Take the rows of different keys from the store, all at once."""
        stored = self._store.get_all(_ROWS, keys)
        rows = iter(self._table.rows([row for row in stored if row is not None]))
        self.update(zip(keys, (None if row is None else next(rows) for row in stored), strict=True))

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
class JoinProcessor(PausingProcessor):
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
        rows = JoinTable(self.table, store)
        rows.load(records)
        yield
        return self._joined(records, rows)

    def joined(self, record: Record, right: Row | None) -> Row:
        """Return the row of a stream's record with that of the table."""
        joined = self.table.nothing if right is None else right
        return (*(record.row or ()), *joined, *self.ending.of(record.key, record.timestamp))

    def _joined(self, records: Sequence[Record], rows: JoinTable) -> Iterator[Record]:
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
            row = (*row, *right, *ending_of(key, time))
            parts = way, key, row, time, topic, partition, offset, headers, old, sequence_key, lane
            # the tuple's own constructor: every record of the stream passes here
            yield _new(Record, parts)
        rows.store_changes()


_LEFT = b"l"
_RIGHT = b"r"


@dataclass(frozen=True, slots=True)
class TableJoinProcessor(PausingProcessor):
    """Both sides' rows are kept here, so the row that a change replaces is known.

    A side that is ``kept`` has results without a row on the other one. Rows that come in at another
    port than the right side's are the left side's. With ``timed`` the left side's rows end with
    their own time: the later one of the rows that the join before has made them of. The change that
    brings them is later if it deleted one of these.

    Source: Kafka Streams' ``KTableKTableInnerJoin``, ``LeftJoin``, ``RightJoin`` and ``OuterJoin``;
    docs/sql/joins.md#table-with-table.
    """

    left: Side
    right: Side
    keeps_left: bool
    keeps_right: bool
    ending: Ending
    timed: bool = False

    def steps(self, records: Sequence[Record], store: Store, log: LogError) -> Steps:
        """Keep each change, and join it.

        Where the other side has a row there is a result, be it a deletion of what nobody knows.
        Where it has none, only a kept side's rows make any.
        """
        packed = {record.key for record in records}
        store.load(_LEFT, packed)
        store.load(_RIGHT, packed)
        yield
        return self._changes(records, store)

    def _changes(self, records: Sequence[Record], store: Store) -> Iterator[Record]:
        for record in records:
            new = TimedRow.of(record)
            if record.port == self.right.port:
                side, space, other_side, other_space = self.right, _RIGHT, self.left, _LEFT
                keeps = self.keeps_right
            else:
                side, space, other_side, other_space = self.left, _LEFT, self.right, _RIGHT
                keeps = self.keeps_left
                if self.timed and new is not None:
                    new = TimedRow(new.row[-1], new.row[:-1])
            old = side.kept(store, space, record.key)
            side.keep(store, space, record.key, new)
            other = other_side.kept(store, other_space, record.key)
            if other is None and not (keeps and (new is not None or old is not None)):
                continue
            yield self._change(record, new, old, other)

    def _change(
        self, record: Record, new: TimedRow | None, old: TimedRow | None, other: TimedRow | None
    ) -> Record:
        port, key, _, time, topic, partition, offset, headers, _, sequence_key, lane = record
        if other is not None and other.time > time:
            time = other.time
        if port == self.right.port:
            row, before = self._joined(key, other, new), self._joined(key, other, old)
        else:
            row, before = self._joined(key, new, other), self._joined(key, old, other)
        parts = port, key, row, time, topic, partition, offset, headers, before, sequence_key, lane
        # the tuple's own constructor: every change of a table passes here
        return _new(Record, parts)

    def _joined(self, key: bytes, left: TimedRow | None, right: TimedRow | None) -> Row | None:
        if left is None:
            if right is None or not self.keeps_right:
                return None
            return (*self.left.nothing, *right.row, *self.ending.of(key, right.time))
        if right is None:
            if not self.keeps_left:
                return None
            return (*left.row, *self.right.nothing, *self.ending.of(key, left.time))
        time = max(left.time, right.time)
        return (*left.row, *right.row, *self.ending.of(key, time))
