"""Turns a batch of a stream into the sink's records in one generated loop.

The other path (``exits`` between a ``Reader`` and an ``Encoder``) makes a row of each record in
every step. These are the source row, the projected row, its key and its value. Here one loop takes
the decoded values and leaves the documents to be printed, and a key that stays as it is passes as
bytes.

It is for plans and batches that are ordinary throughout. They have no table, window, explosion,
TIMESTAMP column or headers, and a key and a value in each record. The other road is for the rest;
whatever both take means the same. A batch is refused before anything of it was evaluated or logged.
"""

from __future__ import annotations

from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ksql.core import indent, tuple_of
from ksql.core.types import ROWOFFSET, ROWPARTITION, ROWTIME, Role
from ksql.exec.dataflow.layout import Exit, StageInput, source_cells
from ksql.exec.dataflow.moved_records import (
    OFFSET,
    PARTITION,
    PLACE_ROWS,
    SEQUENCE_KEY,
    TIME,
    TOPIC,
    MovedRecords,
)
from ksql.exec.dataflow.segment import Segment, conjunction
from ksql.exec.dataflow.stage_inputs import NULL_KEY, CompileContext, Encoder
from ksql.exec.expressions.compile import Body, compile_body
from ksql.formats import SKIP, EncodeError
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ksql.core import OutRecord, Row
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.reading import Reader
    from ksql.exec.operators.base import LogError
    from ksql.exec.operators.order import SequenceKeys
    from ksql.formats import DecodeError
    from ksql.sql.binder import Bound
    from ksql.sql.plan import Sink, Source

_LABEL = "Project"
_PSEUDO = {ROWTIME: "t", ROWPARTITION: "p", ROWOFFSET: "o"}
_LOOP = """\
def run(values, keys, key_rows, times, partitions, offsets, log):
    out_values, out_keys, out_times, out_places = [], [], [], []
    add_value, add_key, add_time = out_values.append, out_keys.append, out_times.append
    add_place = out_places.append
    for {variables}, in zip({columns}):
{lines}
    return out_values, {result}
"""
COLUMNS = {
    "v": "values",
    "k": "keys",
    "q": "key_rows",
    "t": "times",
    "p": "partitions",
    "o": "offsets",
    "i": "range(len(values))",
}


class Decoded(NamedTuple):
    """A decoded batch, column by column; ``key_rows`` only if they are needed."""

    values: list[Any]
    keys: Sequence[bytes | None]
    key_rows: Sequence[Any]
    times: Sequence[int]
    partitions: Sequence[int]
    offsets: Sequence[int]


class BatchDecoder:
    """Decodes batches of a stream, those that are ordinary."""

    def __init__(self, reader: Reader, *, key_rows: bool) -> None:
        self._reader = reader
        self._keyed = any(c.role is Role.KEY for c in reader.source.columns)
        self._key_rows = key_rows or (self._keyed and reader.keys.keeps is None)

    def decoded(self, batch: RawBatch, log: LogError) -> Decoded | None:
        """Return the batch without the records whose value does not decode, which are logged.

        None if it is not ordinary; nothing is logged then.
        """
        if batch.headers is not None or None in batch.values or min(batch.timestamps) < 0:
            return None
        key_rows = self._keys(batch.keys)
        if key_rows is None:
            return None
        problems: list[tuple[int, DecodeError]] = []
        values = self._reader.values.decode_many(
            batch.values, lambda *problem: problems.append(problem)
        )
        if None in values:
            return None
        columns = (values, batch.keys, key_rows, batch.timestamps, batch.partitions, batch.offsets)
        if not problems:
            return Decoded(*columns)
        report = self._reader.failed("value", batch.values, set(), log)
        for index, error in problems:
            report(index, error)
        good = [value is not SKIP for value in values]
        return Decoded(*(list(compress(column, good)) for column in columns))

    def _keys(self, keys: Sequence[bytes | None]) -> Sequence[Any] | None:
        """Return the rows of the keys, nothing if nobody needs them; None: not all are ordinary."""
        serde = self._reader.keys
        if self._keyed and None in keys:
            return None
        if serde.keeps is not None and not serde.keeps(keys):  # type: ignore[arg-type]
            return None
        if not self._key_rows:
            return ()
        bad: list[int] = []
        rows = serde.decode_many(keys, lambda index, _error: bad.append(index))
        return None if bad or None in rows else rows

    def row_logger(self, decoded: Decoded, log: LogError) -> LogError:
        """Log for a place in the decoded columns; the entry has the source's row."""
        last: list[Any] = [None, None]

        def log_row(operator: str, message: str, index: Any) -> None:
            if index != last[0]:
                last[:] = index, self._row(decoded, index)
            log(operator, message, last[1])

        return log_row

    def _row(self, decoded: Decoded, index: int) -> Row:
        values, keys, _, times, partitions, offsets = decoded
        at = slice(index, index + 1)
        key = [self._reader.keys.decode(keys[index])]
        (row,) = self._reader.rows(times[at], partitions[at], offsets[at], (), key, values[at], ())
        return row


class Fused:
    """The records of a plan without stages, from a stream's batch."""

    def __init__(
        self,
        decoder: BatchDecoder,
        run: Callable[..., tuple[list[Any], Any, Any, Any]],
        encoder: Encoder,
        *,
        passing: bool,
    ) -> None:
        self._decoder = decoder
        self._run = run
        self._encoder = encoder
        self._passing = passing
        printing = encoder.values.printing
        self._print = encoder.values.encode_many if printing is None else printing.finish

    def records(self, batch: RawBatch, log: LogError) -> list[OutRecord] | None:
        """Return the records that follow from a batch; None if the batch is not ordinary."""
        decoded = self._decoder.decoded(batch, log)
        columns = None if decoded is None else self._columns(decoded, log)
        if columns is None:
            return None
        keys, values, times, _ = columns
        return list(zip(keys, values, times, repeat(None)))

    def moved(
        self, batch: RawBatch, at: tuple[int, SequenceKeys], log: LogError
    ) -> MovedRecords | None:
        """Return the same with the places of the records; ``at`` is topic and sequence keys."""
        decoded = self._decoder.decoded(batch, log)
        columns = None if decoded is None else self._columns(decoded, log)
        if decoded is None or columns is None:
            return None
        keys, values, _, kept = columns
        places = _places(decoded, *at)
        if len(keys) < len(decoded.times):
            places = places[:, np.array(kept, np.intp)]
        return MovedRecords(keys, values, None, places)

    def _columns(
        self, decoded: Decoded, log: LogError
    ) -> tuple[Sequence[bytes | None], Sequence[bytes | None], Sequence[int], Sequence[int]] | None:
        """Return keys, values, times and, if some were dropped, the places of what is left."""
        values, keys, times, places = self._run(*decoded, self._decoder.row_logger(decoded, log))
        encoder = self._encoder
        try:
            if not self._passing:
                keys = encoder.keys.encode_many(encoder.key_rows(keys))
            return keys, self._print(values), times, places
        except EncodeError:
            return None  # the task ends with it: the other road words why


def _places(decoded: Decoded, topic: int, sequence_keys: SequenceKeys) -> NDArray[np.int64]:
    """Return ``MovedRecords.places`` of a batch."""
    of_each = sequence_keys.of(topic, decoded.partitions, decoded.times)
    places = np.empty((PLACE_ROWS, len(decoded.times)), np.int64)
    places[TIME] = decoded.times
    places[SEQUENCE_KEY] = places[TIME] if of_each is decoded.times else of_each
    places[TOPIC] = topic
    places[PARTITION] = decoded.partitions
    places[OFFSET] = decoded.offsets
    return places


def fused(
    reader: Reader,
    exit_: Exit,
    sink: Sink,
    encoder: Encoder,
    code: CompileContext,
    *,
    places: bool = False,
) -> Fused | None:
    """Return the loop for an exit that begins at a source; None if it needs the other road.

    With ``places`` for results that are moved, too.
    """
    source = reader.source
    if not is_ordinary(source, exit_.segment) or sink.window or sink.timestamp:
        return None
    passing = _passes(source, exit_, sink, reader)
    cells = cells_of(reader)
    outputs = exit_.value if passing else (*exit_.key, *exit_.value)
    body = body_of(cells, exit_.segment, outputs, code)
    run = _compiled(body, cells, exit_, encoder, passing=passing, places=places)
    return Fused(
        BatchDecoder(reader, key_rows=reads_key(body, cells)), run, encoder, passing=passing
    )


def reads_key(body: Body, cells: Sequence[str]) -> bool:
    """Return whether the statements read a column of the decoded key."""
    return any(cells[column].startswith("q") for column in body.columns)


def is_ordinary(source: Source, segment: Segment) -> bool:
    """Return whether a stretch from a source needs nothing that a loop does not do."""
    return (
        source.window is None
        and source.timestamp is None
        and all(column.role is not Role.HEADERS for column in source.columns)
        and not segment.table
        and segment.entry.kind == "source"
        and segment.entry.explosion is None
    )


def _passes(source: Source, exit_: Exit, sink: Sink, reader: Reader) -> bool:
    """Return whether the keys of the stream are those of the sink, byte by byte."""
    names = [cell.name for cell in source_cells(source) if _is_key(cell.origin)]
    return (
        reader.keys.keeps is not None
        and source.key_format == sink.key_format
        and [expr.name if isinstance(expr, b.Column) else None for expr in exit_.key] == names
    )


def _is_key(origin: object) -> bool:
    return getattr(origin, "role", None) is Role.KEY


def cells_of(reader: Reader) -> list[str]:
    """Return the code of each column of the source's rows inside the loop."""
    source, plain = reader.source, reader.keys.plain
    counts = {Role.KEY: 0, Role.VALUE: 0}
    sides = {Role.KEY: "q", Role.VALUE: "v"}
    cells = []
    for cell in source_cells(source):
        if isinstance(cell.origin, str):
            cells.append(_PSEUDO[cell.origin])
            continue
        role = cell.origin.role
        code = f"{sides[role]}[{counts[role]}]"
        cells.append(plain.format("k") if plain and role is Role.KEY else code)
        counts[role] += 1
    return cells


def body_of(
    cells: Sequence[str],
    segment: Segment,
    outputs: Sequence[Bound],
    code: CompileContext,
    row: str = "i",
) -> Body:
    """Return the statements for a row of a segment's entry whose columns have that code."""
    columns = list(zip(segment.entry.shape.names, cells, strict=True))
    where = conjunction(segment.wheres)
    return compile_body(columns, row, where, outputs, code.functions, code.settings)


def _compiled(
    body: Body, cells: Sequence[str], exit_: Exit, encoder: Encoder, *, passing: bool, places: bool
) -> Callable[..., tuple[list[Any], Any, Any, Any]]:
    """Write the loop: only what a condition may drop is collected again."""
    width = 0 if passing else len(exit_.key)
    lines, document, known = document_of(body.values[width:], encoder)
    lines.append(f"add_value({document})")
    needed = {"v", *(cells[column][0] for column in body.columns)}
    if body.reports:
        needed.add("i")
    keys, times = "keys", "times"
    if not passing:
        lines.append(f"add_key({tuple_of(body.values[:width])})")
        keys = "out_keys"
    if exit_.segment.wheres:
        lines.append("add_time(t)")
        needed.add("t")
        times = "out_times"
        if passing:
            lines.append("add_key(k)")
            needed.add("k")
            keys = "out_keys"
        if places:
            lines.append("add_place(i)")
            needed.add("i")
    result = f"{keys}, {times}, out_places"
    return _loop(body, ["continue"], lines, needed, result, _LABEL, known)


def _loop(
    body: Body,
    drop: Sequence[str],
    keep: Sequence[str],
    needed: set[str],
    result: str,
    label: str,
    known: Mapping[str, Any],
) -> Callable[..., Any]:
    """Write the loop that does these statements for a row that is dropped, or kept."""
    first, *rest = keep
    text = _LOOP.format(
        variables=", ".join(sorted(needed)),
        columns=", ".join(COLUMNS[name] for name in sorted(needed)),
        lines="\n".join(indent([*body.lines(drop, first), *rest], 2)),
        result=result,
    )
    source = [*body.code.prologue, *text.splitlines()]
    run: Callable[..., Any] = body.executed(source, label, known)["run"]
    return run


class FusedRows:
    """The rows that an aggregate combines, from a stream's batch that is decoded."""

    def __init__(
        self, decoder: BatchDecoder, run: Callable[..., tuple[list[Any], list[int]]]
    ) -> None:
        self._decoder = decoder
        self._run = run

    def rows(self, decoded: Decoded, log: LogError) -> list[Any]:
        """Return key columns, then what is carried, for each decoded record; None for no row."""
        log_row = self._decoder.row_logger(decoded, log)
        rows, without_key = self._run(*decoded, log_row)
        for index in without_key:
            log_row("groupby", NULL_KEY, index)
        return rows


def fused_rows(reader: Reader, stage_input: StageInput, code: CompileContext) -> FusedRows | None:
    """Return the loop for an input that begins at a source; None if it needs the other road."""
    if not is_ordinary(reader.source, stage_input.segment) or stage_input.null_keys:
        return None
    cells = cells_of(reader)
    body = body_of(cells, stage_input.segment, (*stage_input.key, *stage_input.carried), code)
    tests = [f"{v} is None" for v in body.values[: len(stage_input.key)] if v.isidentifier()]
    keep = [f"add_value({tuple_of(body.values)})"]
    if tests:
        without = indent(["add_key(i)", "add_value(None)"])
        keep = [f"if {' or '.join(tests)}:", *without, "else:", *indent(keep)]
    needed = {"v", "i", *(cells[column][0] for column in body.columns)}
    drop = ["add_value(None)", "continue"]
    run = _loop(body, drop, keep, needed, "out_keys", "PreProject", {})
    return FusedRows(BatchDecoder(reader, key_rows=reads_key(body, cells)), run)


def document_of(
    values: Sequence[str], encoder: Encoder
) -> tuple[list[str], str, Mapping[str, Any]]:
    """Return statements, the code of what is encoded at the end, and what both name."""
    printing = encoder.values.printing
    if printing is None:
        return [], tuple_of(values), {}
    held = [value if value.isidentifier() else f"_x{n}" for n, value in enumerate(values)]
    spilled = [f"{a} = {b}" for a, b in zip(held, values, strict=True) if a != b]
    lines, document = printing.document(held)
    return [*spilled, *lines], document, printing.names
