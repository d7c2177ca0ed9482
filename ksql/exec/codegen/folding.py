"""Folds a batch of a stream into the states of its groups in one generated loop.

The other path makes a row of each record, and a second loop folds it. The conditions are those of
``fused``, for a plan as for a batch. Both paths fold into the same states, so a task may take one
for one batch and the other for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.core import indent, tuple_of
from ksql.exec.codegen.fused import (
    COLUMNS,
    BatchDecoder,
    Decoded,
    FusedRows,
    body_of,
    cells_of,
    fused_rows,
    is_ordinary,
    reads_key,
)
from ksql.exec.dataflow.stage_inputs import NULL_KEY, CompileContext, KeyedInput
from ksql.exec.operators.panes import Panes, pane_lines
from ksql.exec.operators.partial_aggregation import fold_lines, log_failed, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.exec.dataflow.layout import StageInput
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.reading import Reader
    from ksql.exec.expressions.compile import Body
    from ksql.exec.operators.base import LogError
    from ksql.exec.operators.commit_intervals import IntervalStates
    from ksql.exec.operators.folds import Slot, State
    from ksql.exec.operators.windows import Windows

    Run = Callable[..., tuple[list[int], list[Any]]]
    Parts = tuple[BatchDecoder, list[str], Body, str, list[str]]

_LABEL = "PreProject"
_COLUMNS = {**COLUMNS, "h": "sequence_keys"}
_GROUPS = """\
def run(values, keys, key_rows, times, partitions, offsets, sequence_keys, intervals, log):
    begin = end = 0
    states = intervals.states
    find = states.get
    without_key, lost = [], []
    for {variables}, in zip({columns}):
{lines}
    return without_key, lost
"""
_PANES = """\
def run(values, keys, key_rows, times, partitions, offsets, sequence_keys, intervals, log):
    low = high = begin = end = 0
    panes = intervals.states
    without_key, lost = [], []
    for {variables}, in zip({columns}):
{lines}
    return without_key, lost
"""


class GroupFolding:
    """Folds the records of a source by group and commit interval."""

    def __init__(self, decoder: BatchDecoder, run: Run) -> None:
        self._decoder = decoder
        self._run = run

    def decoded(self, batch: RawBatch, log: LogError) -> Decoded | None:
        """Return the batch for ``fold``; None, and nothing else, if it is odd."""
        return self._decoder.decoded(batch, log)

    def fold(
        self,
        decoded: Decoded,
        sequence_keys: Sequence[int],
        states: IntervalStates[State],
        log: LogError,
    ) -> None:
        """Fold records into the states of a ``Combiner``."""
        log_row = self._decoder.row_logger(decoded, log)
        without_key, lost = self._run(*decoded, sequence_keys, states, log_row)
        _log_keyless(without_key, log_row)
        log_failed(lost, log)


class PaneFolding:
    """Folds the records of a source by group and pane.

    ``rows`` are for a batch in which some may not be folded.
    """

    def __init__(self, decoder: BatchDecoder, run: Run, rows: FusedRows) -> None:
        self._decoder = decoder
        self._run = run
        self.rows = rows.rows

    def decoded(self, batch: RawBatch, log: LogError) -> Decoded | None:
        """Return the batch for one of the others; None, and nothing else, if it is odd."""
        return self._decoder.decoded(batch, log)

    def fold(
        self, decoded: Decoded, sequence_keys: Sequence[int], panes: Panes, log: LogError
    ) -> list[tuple[int, Any]]:
        """Fold the records of one partition, none of which may become late in this micro-batch.

        Returns: the places of those that cannot be folded, with their rows.
        """
        log_row = self._decoder.row_logger(decoded, log)
        without_key, lost = self._run(*decoded, sequence_keys, panes.states, log_row)
        _log_keyless(without_key, log_row)
        return lost


def _log_keyless(places: Sequence[int], log_row: LogError) -> None:
    for index in places:
        log_row("groupby", NULL_KEY, index)


def group_folding(
    reader: Reader,
    keyed: KeyedInput,
    stage_input: StageInput,
    slots: Sequence[Slot],
    code: CompileContext,
) -> GroupFolding | None:
    """Return the loop for an input that begins at a source; None if it needs the other road."""
    parts = _parts(reader, keyed, stage_input, code)
    if parts is None:
        return None
    decoder, cells, body, key, tests = parts
    lines = fold_lines(slots, key, body.values[keyed.width :])
    needed = {"v", "t", "h"}
    return GroupFolding(decoder, _compiled(_GROUPS, body, cells, tests, lines, needed, slots))


def pane_folding(
    reader: Reader,
    keyed: KeyedInput,
    stage_input: StageInput,
    slots: Sequence[Slot],
    windows: Windows,
    code: CompileContext,
) -> PaneFolding | None:
    """Return the same for an aggregate with windows."""
    parts, rows = _parts(reader, keyed, stage_input, code), fused_rows(reader, stage_input, code)
    if parts is None or rows is None:
        return None
    decoder, cells, body, key, tests = parts
    lose = f"lost.append((i, {tuple_of(body.values)}))"
    lines = pane_lines(slots, windows, key, body.values[keyed.width :], lose)
    needed = {"v", "t", "i", "h"}
    run = _compiled(_PANES, body, cells, tests, lines, needed, slots)
    return PaneFolding(decoder, run, rows)


def _parts(
    reader: Reader, keyed: KeyedInput, stage_input: StageInput, code: CompileContext
) -> Parts | None:
    """Return decoder, columns' code, statements of a row, code of its group, tests for NULL."""
    if not is_ordinary(reader.source, stage_input.segment) or stage_input.null_keys:
        return None
    cells = cells_of(reader)
    body = body_of(cells, stage_input.segment, (*stage_input.key, *stage_input.carried), code)
    columns = body.values[: keyed.width]
    tests = [f"{value} is None" for value in columns if value.isidentifier()]
    key = columns[0] if keyed.width == 1 else tuple_of(columns)
    if not keyed.plain_key:
        key = f"pack({tuple_of(columns)})"
    return BatchDecoder(reader, key_rows=reads_key(body, cells)), cells, body, key, tests


def _compiled(
    loop: str,
    body: Body,
    cells: Sequence[str],
    tests: Sequence[str],
    lines: Sequence[str],
    needed: set[str],
    slots: Sequence[Slot],
) -> Run:
    needed = needed | {cells[column][0] for column in body.columns}
    needed |= {"i"} if tests or body.reports else set()
    if tests:
        dropped = [f"if {' or '.join(tests)}:", "    without_key.append(i)", "    continue"]
        lines = [*dropped, *lines]
    first, *rest = lines
    text = loop.format(
        variables=", ".join(sorted(needed)),
        columns=", ".join(_COLUMNS[name] for name in sorted(needed)),
        lines="\n".join(indent([*body.lines(["continue"], first), *rest], 2)),
    )
    source = [*body.code.prologue, *text.splitlines()]
    run: Run = body.executed(source, _LABEL, names_of(slots))["run"]
    return run
