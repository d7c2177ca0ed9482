"""Turns the records of a stream and a table into the sink's records in one generated loop.

The other road (``JoinProcessor``, then ``exits``, then ``Encoder``) makes a joined row of each
record, then the rest of it. Both mean the same. The table's changes are stored when everything is
encoded: where that fails the other road begins from the start and words why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.exec.codegen.emission import Emitted, emission
from ksql.exec.operators.joining.joins import JoinProcessor, Rows
from ksql.formats.table import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core.records import OutRecord
    from ksql.exec.codegen.emission import Emission
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.operators.base import LogError, Record, Store
    from ksql.sql.plan.nodes import Sink

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
        rows, emitted = Rows(self._processor.table, store), Emitted.nothing()
        rows.load(records)
        self._run(records, rows, *emitted.adds, self._row_logger(rows, log))
        try:
            out = self._emission.records(emitted)
        except EncodeError:
            return None
        rows.store_changes()
        return out

    def _row_logger(self, rows: Rows, log: LogError) -> LogError:
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
