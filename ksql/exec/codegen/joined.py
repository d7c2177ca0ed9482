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

from ksql.exec.codegen.emission import EmittedRows, emission
from ksql.exec.operators.joining.joins import JoinProcessor, JoinTable
from ksql.exec.operators.stream_partitions import by_lane, together
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ksql.core import OutRecord, Row
    from ksql.exec.codegen.emission import Emission
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.operators.base import LogError, Record, Store
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


class Joined:
    """The records that a join with a table writes."""

    def __init__(
        self, processor: JoinProcessor, run: Callable[..., None], emission: Emission
    ) -> None:
        self._processor = processor
        self._run = run
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
    return Joined(processor, run, end)


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
