"""The generated loops that fold records and leave the sink's documents; what all of them share."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.core import indent, tuple_of
from ksql.exec.codegen.fused import body_of, document_of
from ksql.exec.operators import keys
from ksql.exec.operators.folds import change, merging
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ksql.core import OutRecord, Row
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.expressions.compile import Body
    from ksql.exec.operators.aggregate import AggregateProcessor
    from ksql.exec.operators.base import LogError
    from ksql.exec.operators.commit_intervals import CommitIntervals
    from ksql.exec.operators.folds import Slot, State
    from ksql.exec.operators.keyed_batches import Longs
    from ksql.sql.plan import Sink

_LABEL = "Project"
_LOOP = """\
def run(keys, cells, groups, log):
    out_values, out_keys, out_times, missed = [], [], [], []
    add_value, add_key, add_time = out_values.append, out_keys.append, out_times.append
{lines}
    return (out_values, out_keys, out_times), missed
"""
_time = itemgetter(2)
OutputColumns = tuple[list[Any], list[bytes | None], list[int]]
"""Documents, keys and times."""


class FoldedColumns(NamedTuple):
    """Records in processing order, column by column.

    ``keys`` are those of their states, ``cells`` what a loop reads of them.
    """

    keys: Sequence[bytes]
    sequence_keys: Sequence[int] | Longs
    cells: Sequence[Sequence[Any]]

    def cut(self, begin: int, end: int) -> FoldedColumns:
        """Return the records from one place to another."""
        some = slice(begin, end)
        return FoldedColumns(
            self.keys[some], self.sequence_keys[some], [cells[some] for cells in self.cells]
        )


class ResultEncoding:
    """How the results of a stage are encoded; ``unpacks``: the loop reads the values of keys."""

    def __init__(self, encoder: Encoder, *, unpacks: bool) -> None:
        self._encoder = encoder
        printing = encoder.values.printing
        self._print = encoder.values.encode_many if printing is None else printing.finish
        self._texts = encoder.keys.texts
        self._unpacks = unpacks or not self._texts

    def keys(
        self, packed: Collection[bytes]
    ) -> tuple[Iterable[bytes | None], Sequence[Row] | None]:
        """Return the sink's keys for packed ones, and their values if the loop reads them.

        Raises: EncodeError.
        """
        rows = list(map(tuple, keys.unpack_all(packed))) if self._unpacks else None
        if self._texts:
            return keys.texts(packed), rows
        assert rows is not None  # noqa: S101 - they are unpacked for this
        return self._encoder.keys.encode_many(self._encoder.key_rows(rows)), rows

    def records(self, columns: OutputColumns) -> list[OutRecord]:
        """Return the records.

        Raises: EncodeError.
        """
        values, out_keys, times = columns
        return list(zip(out_keys, self.printed(values), times, repeat(None)))

    def printed(self, values: list[Any]) -> Iterable[bytes | None]:
        """Return the sink's values for documents.

        Raises: EncodeError.
        """
        return self._print(values)


class LoggedEntries:
    """Entries that a loop has logged; they count when all is encoded: else the other road logs."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str, Any]] = []

    def log(self, operator: str, message: str, row: Any) -> None:
        """Keep an entry."""
        self._entries.append((operator, message, row))

    def repeat(self, log: LogError) -> None:
        """Log all entries."""
        for entry in self._entries:
            log(*entry)


class Coalescing(NamedTuple):
    """The loop that gives the last change of each group, and the intervals for which it does so."""

    run: Callable[..., Any]
    intervals: CommitIntervals


class IntervalLoop:
    """The generated loops over records: one gives every change, the other the last ones.

    Every change is written without intervals, and where records have an interval each.
    """

    def __init__(
        self,
        every_change: Callable[..., Any],
        coalescing: Coalescing | None,
        writing: ResultEncoding,
    ) -> None:
        self._every_change = every_change
        self._coalescing = coalescing
        self._writing = writing

    def records(
        self, records: FoldedColumns, groups: Mapping[bytes, Any], log: LogError
    ) -> tuple[list[OutRecord], Collection[bytes]]:
        """Return the sink's records, and the keys all of whose records have failed.

        ``groups`` are by key. The results of an interval are in the order of their times.
        Raises: EncodeError.
        """
        coalescing = self._coalescing
        if coalescing is None:
            columns, missed = self._every_change(records.keys, records.cells, groups, log)
            return self._writing.records(columns), all_missed(missed, records.keys)
        values, out_keys, times = whole = list[Any](), list[bytes | None](), list[int]()
        missed, unordered = list[bytes](), list[tuple[int, int]]()
        for are_alone, begin, end in coalescing.intervals.runs(records.sequence_keys):
            some = records.cut(begin, end)
            if are_alone:
                columns, lost = self._every_change(some.keys, some.cells, groups, log)
            else:
                of_some = groups
                if end - begin < len(records.keys):
                    of_some = {key: groups[key] for key in dict.fromkeys(some.keys)}
                columns, lost = coalescing.run(some.keys, some.cells, of_some, log)
                unordered.append((len(values), len(values) + len(columns[0])))
            values += columns[0]
            out_keys += columns[1]
            times += columns[2]
            missed += lost
        out = self._writing.records(whole)
        for begin, end in unordered:
            out[begin:end] = sorted(out[begin:end], key=_time)
        return out, all_missed(missed, records.keys)


def without(
    never: Collection[bytes], keys: Iterable[bytes], states: Iterable[State]
) -> dict[bytes, State]:
    """Return the states by key, but for some keys."""
    kept = zip(keys, states, strict=True)
    return {key: state for key, state in kept if key not in never} if never else dict(kept)


def all_missed(missed: Sequence[bytes], all_keys: Iterable[bytes]) -> Collection[bytes]:
    """Return the keys all of whose records have failed."""
    if not missed:
        return ()
    counts = Counter(all_keys)
    return {key for key, count in Counter(missed).items() if count == counts[key]}


class ResultLoops(NamedTuple):
    """The code of one aggregate's loops.

    ``group`` names what ``groups`` has of each, ``shown`` and ``emit`` are statements that give out
    its row, ``known`` is what they name.
    """

    body: Body
    group: str
    shown: Sequence[str]
    emit: Sequence[str]
    known: Mapping[str, Any]
    writing: ResultEncoding

    def over(
        self, cells: Sequence[str], fold: Sequence[str], intervals: CommitIntervals | None
    ) -> IntervalLoop:
        """Return the loops over records whose cells have these names."""
        each = f"for {', '.join(['k', *cells])} in zip(keys, *cells):"
        fold = [f"{self.group} = groups[k]", *fold]
        results = [*self.shown, *self.emit]
        every_change = self._compiled([each, *indent([*fold, *results])])
        coalescing = None
        if intervals is not None:
            text = [each, *indent(fold), "never = all_missed(missed, keys)"]
            text += [f"for k, ({self.group}) in groups.items():"]
            text += indent(["if k in never:", "    continue", *results])
            coalescing = Coalescing(self._compiled(text), intervals)
        return IntervalLoop(every_change, coalescing, self.writing)

    def _compiled(self, lines: Sequence[str]) -> Callable[..., Any]:
        text = _LOOP.format(lines="\n".join(indent(lines)))
        return executed(self.body, text, {**self.known, "all_missed": all_missed})


def ends_alike(cut: Layout, sink: Sink, slots: Sequence[Slot]) -> bool:
    """Return whether a loop can make what a plan makes of the results of its last aggregate."""
    exit_, stage_input = cut.exit, cut.stages[-1].stage_inputs[0]
    segment = exit_.segment
    if (
        sink.timestamp
        or segment.entry.explosion
        or segment.wheres
        or stage_input.segment.table
        or exit_.rekeyed
    ):
        return False
    if any("step" in slot.function.in_place for slot in slots):
        return False  # what is changed in place could not be taken back
    names = [expr.name if isinstance(expr, b.Column) else None for expr in exit_.key]
    return names == segment.entry.shape.names[: len(stage_input.key)]


def results_of(
    cut: Layout, slots: Sequence[Slot], time: str, bounds: Sequence[str], code: CompileContext
) -> tuple[Body, list[str]]:
    """Return the sink's values of a group, and statements that come before.

    The group has the state ``s``, the values ``w``, a time and its window's bounds, if it has one.
    """
    width = len(cut.stages[-1].stage_inputs[0].key)
    group = [f"w[{index}]" for index in range(width)]
    results = [f"x{i}" if s.function.result else f"s[{1 + s.number}]" for i, s in enumerate(slots)]
    cells = [*group, *results, time, *bounds]
    body = body_of(cells, cut.exit.segment, cut.exit.value, code, row=tuple_of(cells))
    with_result = [(i, s.number) for i, s in enumerate(slots) if s.function.result]
    shown = [f"x{i} = result{i}(s[{1 + number}])" for i, number in with_result]
    if shown:
        shown = [*guarded(shown, tuple_of([*group, *bounds])), "    continue"]
    return body, shown


def reads_group(cut: Layout, body: Body, shown: Sequence[str]) -> bool:
    """Return whether those statements read the group's values."""
    width = len(cut.stages[-1].stage_inputs[0].key)
    return bool(shown) or body.reports or any(column < width for column in body.columns)


def folding(
    processor: AggregateProcessor, slots: Sequence[Slot], cells: Sequence[str] | None = None
) -> list[str]:
    """Return statements that fold a record into its state, or leave it for the next one.

    It has the row ``r``, or values with the code ``cells``. With windows, records that stand for
    several have their state in ``o``.
    """
    row = "r" if cells is None else tuple_of(cells)
    alone = _folded(change("step", slots, cells), row, "t")
    if not processor.combined:
        return alone
    if processor.windows is None:
        return _folded(merging(slots), "r", "r[0]")
    several = ["r = o", *_folded(merging(slots), "None", "r[0]")]
    return ["if o is None:", *indent(alone), "else:", *indent(several)]


def _folded(fold: tuple[list[str], list[str]], row: str, time: str) -> list[str]:
    lines, assigns = fold
    return [
        *guarded(lines or ["pass"], row),
        "    missed.append(k)",
        "    continue",
        *assigns,
        f"if {time} > s[0]:",
        f"    s[0] = {time}",
    ]


def guarded(lines: Sequence[str], row: str) -> list[str]:
    """Return the statements.

    If one fails it is logged with the row, and what follows there is done.
    """
    return [
        "try:",
        *indent(lines),
        "except Exception as error:",
        f"    failed_fold(error, log, {row})",
    ]


def emitted(body: Body, encoder: Encoder, key: str, time: str) -> tuple[list[str], dict[str, Any]]:
    """Return statements that give out a row with that key and time, and what they name."""
    lines, document, known = document_of(body.values, encoder)
    emit = [*lines, f"add_value({document})", f"add_key({key})", f"add_time({time})"]
    return [*body.lines(["continue"], emit[0]), *emit[1:]], dict(known)


def executed(body: Body, text: str, known: Mapping[str, Any]) -> Callable[..., Any]:
    """Execute a loop that has these statements; return it."""
    source = [*body.code.prologue, *text.splitlines()]
    run: Callable[..., Any] = body.executed(source, _LABEL, known)["run"]
    return run
