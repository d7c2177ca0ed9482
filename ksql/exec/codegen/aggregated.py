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

from collections import Counter
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ksql.core import indent, tuple_of
from ksql.core.types import window_key
from ksql.exec.codegen.fused import body_of, document_of
from ksql.exec.operators import keys
from ksql.exec.operators.aggregate import (
    GROUPS,
    AggregateProcessor,
    Place,
    VisitOrder,
    place_sequence_key,
)
from ksql.exec.operators.base import LogError, Record, Store, sequence_key_of
from ksql.exec.operators.expiry import ExpiringProcessor
from ksql.exec.operators.folds import Slot, State, change, functions_of, log_failure, merging
from ksql.exec.operators.keyed_batches import Queues, columns_in_order
from ksql.exec.operators.stream_partitions import by_lane, together
from ksql.formats import EncodeError
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ksql.core import OutRecord, Row
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
    from ksql.exec.dataflow.stages import CompiledStage
    from ksql.exec.expressions.compile import Body
    from ksql.exec.operators.commit_intervals import CommitIntervals
    from ksql.exec.operators.windows import Windows
    from ksql.sql.plan import Sink

_LABEL = "Project"
_LOOP = """\
def run(records, {known}, log):
    out_values, out_keys, out_times, missed = [], [], [], []
    add_value, add_key, add_time = out_values.append, out_keys.append, out_times.append
{lines}
    return (out_values, out_keys, out_times), missed
"""
_EACH = "for _, k, r, t, _, _, _, _, _, _, _ in records:"
_VISIT = "for _, k, _, (_, _, r, t, _, _, _, _, o, _, _) in records:"
_key = itemgetter(1)
_row = itemgetter(2)
_headers = itemgetter(7)
_time = itemgetter(2)
Item = TypeVar("Item", bound=tuple[Any, ...])
OutputColumns = tuple[list[Any], list[bytes | None], list[int]]
"""Documents, keys and times."""


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
    ) -> tuple[Iterable[bytes | None], Iterable[Row | None]]:
        """Return the sink's keys for packed ones, and their values if the loop reads them.

        Raises: EncodeError.
        """
        rows = list(map(tuple, keys.unpack_all(packed))) if self._unpacks else None
        if self._texts:
            return keys.texts(packed), rows or repeat(None)
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


class IntervalLoop(Generic[Item]):
    """The generated loops over records: one gives every change, the other the last ones.

    Every change is written without intervals, and where records have an interval each.
    """

    def __init__(
        self,
        every_change: Callable[..., Any],
        coalescing: Coalescing | None,
        sequence_key: Callable[[Item], int],
        writing: ResultEncoding,
    ) -> None:
        self._every_change = every_change
        self._coalescing = coalescing
        self._sequence_key = sequence_key
        self._writing = writing

    def records(
        self, items: Sequence[Item], groups: Mapping[bytes, Any], log: LogError
    ) -> tuple[list[OutRecord], list[bytes]]:
        """Return the sink's records, and the keys of what has failed; ``groups`` are by key.

        Those of an interval are in the order of their times. Raises: EncodeError.
        """
        coalescing = self._coalescing
        if coalescing is None:
            columns, missed = self._every_change(items, groups, log)
            return self._writing.records(columns), missed
        values, out_keys, times = whole = list[Any](), list[bytes | None](), list[int]()
        missed, unordered = list[bytes](), list[tuple[int, int]]()
        for are_alone, some in coalescing.intervals.runs(items, self._sequence_key):
            if are_alone:
                columns, lost = self._every_change(some, groups, log)
            else:
                of_some = groups
                if len(some) < len(items):
                    of_some = {key: groups[key] for key in dict.fromkeys(map(_key, some))}
                columns, lost = coalescing.run(some, of_some, log)
                unordered.append((len(values), len(values) + len(columns[0])))
            values += columns[0]
            out_keys += columns[1]
            times += columns[2]
            missed += lost
        out = self._writing.records(whole)
        for begin, end in unordered:
            out[begin:end] = sorted(out[begin:end], key=_time)
        return out, missed


class Aggregated:
    """The records that an aggregate without windows writes."""

    def __init__(
        self,
        processor: AggregateProcessor,
        loop: IntervalLoop[Record],
        by_column: Callable[..., Any] | None,
        writing: ResultEncoding,
    ) -> None:
        """Take the loops; ``by_column``, if every change of single records is written."""
        self._processor = processor
        self._loop = loop
        self._run_by_column = by_column
        self._writing = writing

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if not all is ordinary."""
        if any(map(_headers, records)) or None in map(_row, records):
            return None
        packed = dict.fromkeys(map(_key, records))
        states = self._processor.states(packed, store, GROUPS)
        try:
            out, missed = self._loop.records(records, self._groups(packed, states), log)
        except EncodeError:
            return None
        never = _always(missed, records)
        self._processor.keep(_without(never, packed, states), store, GROUPS)
        return out

    def by_column(self, records: Queues, store: Store, log: LogError) -> list[OutRecord] | None:
        """Return the same for records in no order; None also if not all of them are ordinary."""
        run = self._run_by_column
        given = None if run is None else columns_in_order(records)
        if run is None or given is None:
            return None
        packed, entries = dict.fromkeys(given.keys), LoggedEntries()
        states = self._processor.states(packed, store, GROUPS)
        try:
            groups = self._groups(packed, states)
            columns, missed = run((given.keys, given.times, *given.columns), groups, entries.log)
            out = self._writing.records(columns)
        except EncodeError:
            return None
        entries.repeat(log)
        never = _all_missed(missed, given.keys)
        self._processor.keep(_without(never, packed, states), store, GROUPS)
        return out

    def _groups(self, packed: Collection[bytes], states: Sequence[State]) -> dict[bytes, Any]:
        """Return state, encoded key and values of each group.

        Raises: EncodeError.
        """
        group_keys = zip(states, *self._writing.keys(packed))  # noqa: B905 - may repeat
        return dict(zip(packed, group_keys, strict=True))


class AggregatedWindows:
    """The records that an aggregate with windows writes; ``laned`` as in ``Compiled``."""

    def __init__(
        self,
        processor: AggregateProcessor,
        windows: Windows,
        loop: IntervalLoop[Place],
        writing: ResultEncoding,
        *,
        laned: bool,
    ) -> None:
        self._processor = processor
        self._windows = windows
        self._loop = loop
        self._writing = writing
        self._laned = laned

    def records(
        self, records: Sequence[Record], store: Store, log: LogError
    ) -> list[OutRecord] | None:
        """Return what follows from records in processing order; None if not all is ordinary."""
        if any(map(_headers, records)) or not self._whole(records):
            return None
        lanes = by_lane(records, store, laned=self._laned)
        said = LoggedEntries()
        visit = self._processor.visits
        calls = [visit(some, self._windows, part, said.log) for some, part in lanes]
        visited = list(zip(together(calls), (part for _, part in lanes), strict=True))
        try:
            done = [self._written(visits, part, said.log) for visits, part in visited]
        except EncodeError:
            return None
        said.repeat(log)
        for (visits, part), (_, states) in zip(visited, done, strict=True):
            for space, group_keys in visits.starts.items():
                kept = {key: states[key] for key in group_keys if key in states}
                self._processor.keep(kept, part, space)
            visits.clock.write(part)
        return list(chain.from_iterable(out for out, _ in done))

    def _whole(self, records: Sequence[Record]) -> bool:
        """Return whether each record has arguments, or a state where records may be combined."""
        if not self._processor.combined:
            return None not in map(_row, records)
        return all(r is not None or o is not None for _, _, r, _, _, _, _, _, o, _, _ in records)

    def _written(
        self, visits: VisitOrder, store: Store, log: LogError
    ) -> tuple[list[OutRecord], dict[bytes, State]]:
        """Return the records of a lane, and the states that count.

        Raises: EncodeError.
        """
        places = visits.places
        states: dict[bytes, State] = {}
        for space, group_keys in visits.starts.items():
            loaded = self._processor.states(group_keys, store, space)
            states |= zip(group_keys, loaded, strict=True)
        out, missed = self._loop.records(places, self._groups(visits, states), log)
        never = _always(missed, places)
        return out, _without(never, states, states.values())

    def _groups(self, visits: VisitOrder, states: Mapping[bytes, State]) -> dict[bytes, Any]:
        """Return state, encoded key, values and bounds of each window of a group.

        They are in the order of the first visits. Raises: EncodeError.
        """
        group_of = {key: record[1] for _, key, _, record in visits.places}
        packed = dict.fromkeys(group_of.values())
        encoded = zip(*self._writing.keys(packed))  # noqa: B905 - may repeat
        known = dict(zip(packed, encoded, strict=True))
        start_of = {key: start for some in visits.starts.values() for key, start in some.items()}
        size = self._windows.size_ms
        ends = {
            start: (window_key(b"", start), (start, start + size)) for start in {*start_of.values()}
        }
        groups = {}
        for key, group in group_of.items():
            written, values = known[group]
            suffix, bounds = ends[start_of[key]]
            written = None if written is None else written + suffix
            groups[key] = states[key], written, values, bounds
        return groups


def _without(
    never: Collection[bytes], keys: Iterable[bytes], states: Iterable[State]
) -> dict[bytes, State]:
    kept = zip(keys, states, strict=True)
    return {key: state for key, state in kept if key not in never} if never else dict(kept)


def _always(missed: Sequence[bytes], records: Sequence[Any]) -> Collection[bytes]:
    """Return the keys all of whose records have failed."""
    return _all_missed(missed, map(_key, records))


def _all_missed(missed: Sequence[bytes], all_keys: Iterable[bytes]) -> Collection[bytes]:
    if not missed:
        return ()
    counts = Counter(all_keys)
    return {key for key, count in Counter(missed).items() if count == counts[key]}


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
    group = "s, e, w" if windows is None else "s, e, w, b"
    fold = [f"{group} = groups[k]", *_folding(processor, slots)]
    loop = _EACH if windows is None else _VISIT
    known |= {**functions_of(slots), "failed_fold": log_failure, "always": _always}
    every_change = _compiled(body, [loop, *indent([*fold, *shown, *emit])], "groups", known)
    coalescing = None
    if processor.intervals is not None:
        rest = ["if k in never:", "    continue", *shown, *emit]
        text = [loop, *indent(fold), "never = always(missed, records)"]
        text += [f"for k, ({group}) in groups.items():", *indent(rest)]
        coalescing = Coalescing(_compiled(body, text, "groups", known), processor.intervals)
    writing = ResultEncoding(encoder, unpacks=reads_group(cut, body, shown))
    if windows is None:
        records = IntervalLoop[Record](every_change, coalescing, sequence_key_of, writing)
        by_column = None
        if processor.intervals is None and not processor.combined:
            cells = [f"c{n}" for n in range(len(cut.stages[-1].stage_inputs[0].carried))]
            fold = _folded(change("step", slots, cells), tuple_of(cells), "t")
            each = f"for {', '.join(['k', 't', *cells])} in zip(*records):"
            lines = [each, *indent([f"{group} = groups[k]", *fold, *shown, *emit])]
            by_column = _compiled(body, lines, "groups", known)
        return Aggregated(processor, records, by_column, writing)
    places = IntervalLoop[Place](every_change, coalescing, place_sequence_key, writing)
    return AggregatedWindows(processor, windows, places, writing, laned=laned)


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


def _folding(processor: AggregateProcessor, slots: Sequence[Slot]) -> list[str]:
    """Return statements that fold a record into its state, or leave it for the next one.

    With windows, records that stand for several have their state in ``o``.
    """
    if not processor.combined:
        return _folded(change("step", slots), "r", "t")
    if processor.windows is None:
        return _folded(merging(slots), "r", "r[0]")
    alone = _folded(change("step", slots), "r", "t")
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


def _compiled(
    body: Body, lines: Sequence[str], names: str, known: Mapping[str, Any]
) -> Callable[..., Any]:
    text = _LOOP.format(known=names, lines="\n".join(indent(lines)))
    return executed(body, text, known)


def executed(body: Body, text: str, known: Mapping[str, Any]) -> Callable[..., Any]:
    """Execute a loop that has these statements; return it."""
    source = [*body.code.prologue, *text.splitlines()]
    run: Callable[..., Any] = body.executed(source, _LABEL, known)["run"]
    return run
