"""Turns an aggregate's records into the sink's records in one generated loop.

The other road makes a record of each result, then a row for the sink, then its key and its value.
Here one loop folds and leaves the documents to be printed; a key is encoded once for all records of
a call that have it. Both paths give the same results. Only the log differs: it has the failures of
two steps record by record here, step by step there.

It is for aggregates over a stream, with TUMBLING and HOPPING windows too, but not for rows that
expire. Records with headers take the other path, and so does a call with a result that cannot be
encoded. Nothing is in the store until everything is.
"""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ksql.exec.codegen.aggregate_loops import (
    FoldedColumns,
    IntervalLoop,
    LoggedEntries,
    ResultEncoding,
    ResultLoops,
    emitted,
    ends_alike,
    folding,
    reads_group,
    results_of,
    without,
)
from ksql.exec.codegen.aggregated_windows import AggregatedWindows
from ksql.exec.operators.aggregate import GROUPS, AggregateProcessor
from ksql.exec.operators.base import LogError, Record, Store, sequence_key_of
from ksql.exec.operators.expiry import ExpiringProcessor
from ksql.exec.operators.folds import State, functions_of, log_failure
from ksql.exec.operators.keyed_batches import Queues, columns_in_order
from ksql.formats import EncodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ksql.core import OutRecord
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.dataflow.stages import CompiledStage
    from ksql.sql.plan import Sink

_key = itemgetter(1)
_row = itemgetter(2)
_timestamp = itemgetter(3)
_headers = itemgetter(7)


class Aggregated:
    """The records that an aggregate without windows writes."""

    def __init__(
        self,
        processor: AggregateProcessor,
        loop: IntervalLoop,
        column_loop: IntervalLoop | None,
        writing: ResultEncoding,
    ) -> None:
        """Take the loops over records and over columns, which combined records do not have."""
        self._processor = processor
        self._loop = loop
        self._column_loop = column_loop
        self._writing = writing

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if not all is ordinary."""
        rows = list(map(_row, records))
        if any(map(_headers, records)) or None in rows:
            return None
        cells = rows, list(map(_timestamp, records))
        turns = list(map(sequence_key_of, records))
        given = FoldedColumns(list(map(_key, records)), turns, cells)
        return self._written(self._loop, given, store, log)

    def by_column(self, records: Queues, store: Store, log: LogError) -> list[OutRecord] | None:
        """Return the same for records in no order; None also if not all of them are ordinary."""
        loop = self._column_loop
        given = None if loop is None else columns_in_order(records)
        if loop is None or given is None:
            return None
        entries = LoggedEntries()
        columns = FoldedColumns(given.keys, given.sequence_keys, (given.times, *given.columns))
        out = self._written(loop, columns, store, entries.log)
        if out is not None:
            entries.repeat(log)
        return out

    def _written(
        self, loop: IntervalLoop, given: FoldedColumns, store: Store, log: LogError
    ) -> list[OutRecord] | None:
        packed = dict.fromkeys(given.keys)
        states = self._processor.states(packed, store, GROUPS)
        try:
            out, never = loop.records(given, self._groups(packed, states), log)
        except EncodeError:
            return None
        self._processor.keep(without(never, packed, states), store, GROUPS)
        return out

    def _groups(self, packed: Collection[bytes], states: Sequence[State]) -> dict[bytes, Any]:
        """Return state, encoded key and values of each group.

        Raises: EncodeError.
        """
        encoded, values = self._writing.keys(packed)
        groups = zip(states, encoded, values or repeat(None))  # noqa: B905 - values may repeat
        return dict(zip(packed, groups, strict=True))


def aggregated(
    cut: Layout,
    operator: CompiledStage,
    sink: Sink,
    encoder: Encoder,
    code: CompileContext,
    *,
    laned: bool,
) -> Aggregated | AggregatedWindows | None:
    """Return the loop for a plan that ends with an aggregate; None if it needs the other road."""
    processor, slots = operator.processor, operator.slots
    if not isinstance(processor, AggregateProcessor) or processor.keep_old:
        return None
    if isinstance(processor, ExpiringProcessor):
        return None
    windows = processor.windows
    if (windows is None) != (sink.window is None) or (laned and windows is None):
        return None
    if not ends_alike(cut, sink, slots):
        return None
    bounds = [] if windows is None else ["b[0]", "b[1]"]
    body, shown = results_of(cut, slots, "s[0]", bounds, code)
    emit, known = emitted(body, encoder, "e", "s[0]")
    known |= {**functions_of(slots), "failed_fold": log_failure}
    group = "s, e, w" if windows is None else "s, e, w, b"
    writing = ResultEncoding(encoder, unpacks=reads_group(cut, body, shown))
    loops = ResultLoops(body, group, shown, emit, known, writing)
    carried = [f"c{n}" for n in range(len(cut.stages[-1].stage_inputs[0].carried))]
    states = ["o"] if processor.combined and windows is not None else []
    fold, intervals = folding(processor, slots), processor.intervals
    by_record = loops.over(["r", "t", *states], fold, intervals)
    by_column = None
    if windows is not None or not processor.combined:
        fold = folding(processor, slots, carried)
        by_column = loops.over(["t", *states, *carried], fold, intervals)
    if windows is None:
        return Aggregated(processor, by_record, by_column, writing)
    assert by_column is not None  # noqa: S101 - with windows it is there
    return AggregatedWindows(
        processor, windows, (by_record, by_column), len(carried), writing, laned=laned
    )
