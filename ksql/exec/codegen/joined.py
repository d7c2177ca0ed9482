"""Generates the loops of stream-table and stream-stream joins: records in, the sink's out.

The other road (``JoinProcessor``, then ``exits``, then ``Encoder``) makes a joined row of each
record, then the rest of it. Both mean the same. The table's changes are stored when everything is
encoded: where that fails the other road begins from the start and words why.

Joined rows of two streams are printed at once, without a row in between.

The other road (the processor's own records, then ``exits``, then ``Encoder``) makes a joined row of
each pair, then the rest of it. Both mean the same. Joins whose records wait for a match take the
other road. The state is written when everything is encoded: where that fails the other road begins
again and words why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.exec.codegen.aggregate_loops import LoggedEntries
from ksql.exec.codegen.emission import Emission, EmittedRows, emission
from ksql.exec.operators.base import LogError, Record, Store
from ksql.exec.operators.joining.joins import JoinProcessor, JoinTable
from ksql.exec.operators.keyed_batches import Queues, StreamColumns, columns_in_order
from ksql.exec.operators.stream_partitions import by_lane, together
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ksql.core import OutRecord, Row
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.operators.joining.streams import StreamJoinProcessor
    from ksql.sql.plan import Sink


_LOOP = """\
def run(records, rows, add_value, add_key, add_time, add_header, log):
    for record in records:
        port, key, left, t, _, _, _, h, _, _, _ = record
        if port == table:
            rows.change(key, left)
            continue
        if left is None:
            continue
        right = rows[key]
        if right is None:
            {missing}
{lines}
"""
_BY_COLUMN = """\
def run(keys, times, columns, places, rows, add_value, add_key, add_time, log):
    rights = map(rows.__getitem__, keys)
    for i, key, t, right, {columns} in zip(places, keys, times, rights, *columns):
        if right is None:
            {missing}
{lines}
"""


class Joined:
    """The records that a join with a table writes; by record, and by column without headers."""

    def __init__(
        self,
        processor: JoinProcessor,
        run: Callable[..., None],
        by_column: Callable[..., None],
        emission: Emission,
    ) -> None:
        self._processor = processor
        self._run = run
        self._run_by_column = by_column
        self._emission = emission

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if it cannot be encoded."""
        rows, emitted = JoinTable(self._processor.table, store), EmittedRows.nothing()
        rows.load(records)
        self._run(records, rows, *emitted.adds, self._row_logger(rows, log))
        try:
            out = self._emission.records(emitted)
        except EncodeError:
            return None
        rows.store_changes()
        return out

    def by_column(self, records: Queues, store: Store, log: LogError) -> list[OutRecord] | None:
        """Return the same for records in no order; None also if not all of them are ordinary."""
        given = columns_in_order(records, self._processor.table.port)
        if given is None:
            return None
        rows, emitted = JoinTable(self._processor.table, store), EmittedRows.nothing()
        entries = LoggedEntries()
        rows.take({*given.keys, *(record.key for _, record in given.others)})
        log_row = self._place_logger(given, rows, entries.log)
        begin = 0
        for end, record in (*given.others, (len(given.keys), None)):
            if begin < end:
                some = slice(begin, end)
                keys, times = given.keys[some], given.times[some]
                columns = [column[some] for column in given.columns]
                places = range(begin, end)
                self._run_by_column(keys, times, columns, places, rows, *emitted.adds[:3], log_row)
                begin = end
            if record is not None:
                rows.change(record.key, record.row)
        try:
            out = self._emission.records(emitted)
        except EncodeError:
            return None
        entries.repeat(log)
        rows.store_changes()
        return out

    def _place_logger(self, given: StreamColumns, rows: JoinTable, log: LogError) -> LogError:
        """Log for a place in the columns; the entry has the joined row."""
        last: list[Any] = [None, None]
        processor = self._processor

        def log_row(operator: str, message: str, place: Any) -> None:
            if place != last[0]:
                key, row = given.keys[place], tuple(column[place] for column in given.columns)
                record = Record(0, key, row, given.times[place])
                last[:] = place, processor.joined(record, rows[key])
            log(operator, message, last[1])

        return log_row

    def _row_logger(self, rows: JoinTable, log: LogError) -> LogError:
        """Log for a record of the stream; the entry has the joined row."""
        last: list[Any] = [None, None]
        processor = self._processor

        def log_row(operator: str, message: str, record: Any) -> None:
            if record is not last[0]:
                last[:] = record, processor.joined(record, rows[record.key])
            log(operator, message, last[1])

        return log_row


def joined(
    cut: Layout, processor: JoinProcessor, sink: Sink, encoder: Encoder, code: CompileContext
) -> Joined | None:
    """Return the loop for a plan that ends with a join with a table.

    None if it needs the other road.
    """
    end = emission(cut, sink, encoder, code, "record")
    if end is None:
        return None
    missing = "right = nothing" if processor.outer else "continue"
    text = _LOOP.format(missing=missing, lines="\n".join(end.lines(2)))
    table = processor.table
    run = end.executed(text, {"table": table.port, "nothing": table.nothing})["run"]
    ending = emission(cut, sink, encoder, code, "i", left="c{}", headers=False)
    assert ending is not None  # noqa: S101 - the other one is there
    columns = "".join(f"c{n}, " for n in range(len(cut.stages[-1].stage_inputs[0].carried)))
    text = _BY_COLUMN.format(columns=columns, missing=missing, lines="\n".join(ending.lines(2)))
    by_column = ending.executed(text, {"nothing": table.nothing})["run"]
    return Joined(processor, run, by_column, end)


_LOOPS = """\
def made(add_value, add_key, add_time, add_header, row_of, log):
    def pairs(record, row, line, start, end, *, is_left):
        key, now, h = record[1], record[3], record[7]
        times, rows = line
        if is_left:
            left = row
            for place in range(start, end):
                t, right = times[place], rows[place]
                if t < now:
                    t = now
{lines}
        else:
            right = row
            for place in range(start, end):
                t, left = times[place], rows[place]
                if t < now:
                    t = now
{lines}
    def alone(record, key, t, row, *, is_left):
        h = record[7]
        left, right = (row, no_right) if is_left else (no_left, row)
        for _ in (0,):
{alone}
    return pairs, alone
"""


class _Printed:
    """Takes what a join gives and makes documents of it."""

    def __init__(
        self, processor: StreamJoinProcessor, make: Callable[..., Any], log: LogError
    ) -> None:
        self.emitted = EmittedRows.nothing()
        self._ending = processor.ending
        self._last: tuple[Any, ...] = (None, None, None, None)
        self._row: Row = ()
        self.pairs: Callable[..., None]
        self.alone: Callable[..., None]
        self.pairs, self.alone = make(*self.emitted.adds, self._row_of, log)

    def _row_of(self, left: Row, right: Row, key: bytes, t: int) -> Row:
        """Make the joined row, for the log: one for all its entries."""
        last = self._last
        if left is not last[0] or right is not last[1] or (key, t) != last[2:]:
            self._last = left, right, key, t
            self._row = (*left, *right, *self._ending.of(key, t))
        return self._row


class Paired:
    """The records that a join of two streams writes."""

    def __init__(
        self,
        processor: StreamJoinProcessor,
        make: Callable[..., Any],
        emission: Emission,
        *,
        laned: bool,
    ) -> None:
        self._processor = processor
        self._laned = laned
        self._make = make
        self._emission = emission

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if it cannot be encoded."""
        parts = by_lane(records, store, laned=self._laned)
        calls = together([self._call(some, part, log) for some, part in parts])
        try:
            out = [record for emitted, _ in calls for record in self._emission.records(emitted)]
        except EncodeError:
            return None
        for _, write in calls:
            write()
        return out

    def _call(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> Generator[None, None, tuple[EmittedRows, Callable[[], None]]]:
        out = _Printed(self._processor, self._make, log)
        write = yield from self._processor.into(out, records, store, log)
        return out.emitted, write


def paired(
    cut: Layout,
    processor: StreamJoinProcessor,
    sink: Sink,
    encoder: Encoder,
    code: CompileContext,
    *,
    laned: bool,
) -> Paired | None:
    """Return the loops for a plan that ends with a join of streams.

    None if it needs the other road.
    """
    if processor.waits:
        return None
    end = emission(cut, sink, encoder, code, "row_of(left, right, key, t)")
    if end is None:
        return None
    text = _LOOPS.format(lines="\n".join(end.lines(4)), alone="\n".join(end.lines(3)))
    nothing = {"no_left": processor.left.nothing, "no_right": processor.right.nothing}
    return Paired(processor, end.executed(text, nothing)["made"], end, laned=laned)
