"""Cuts a plan into ingest, stages and exit; decides which joins share one stage.

The layout of every row in a program is made here.

Of joins in a row it decides which ones one stage does, and which columns their rows have of their
own.

A join whose rows are joined again under the same key needs no other exchange. Every record goes
through all of these joins before the next one, as it does within a task of Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ksql.core.types import BIGINT, PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS, Column, Role, SqlType
from ksql.exec.dataflow.foreign import ForeignInputs, ForeignStep
from ksql.exec.dataflow.segment import Entry, RowShape, Segment, entering, exploded, extend
from ksql.sql.binder import Bound, Named, trees, type_of
from ksql.sql.binder import bound as b
from ksql.sql.plan import (
    Aggregate,
    EmitFinal,
    Explode,
    Filter,
    ForeignKeyJoin,
    Plan,
    Rekey,
    Select,
    Sink,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    result_kind,
    sources,
)
from ksql.sql.plan.walk import nodes

KeyedJoin = StreamTableJoin | StreamStreamJoin | TableTableJoin
"""The joins whose sides meet under one key."""


def chain(join: KeyedJoin) -> tuple[KeyedJoin, ...]:
    """Return the joins that one stage does, the innermost first, the given one last."""
    left = join.left
    if isinstance(left, KeyedJoin) and _same_key(left, join):
        return (*chain(left), join)
    return (join,)


def _same_key(inner: KeyedJoin, outer: KeyedJoin) -> bool:
    """Return whether the inner join's rows have the key already under which the outer one meets.

    What an outer join puts NULLs into is another key, except for tables: their rows never move.
    """
    match inner:
        case TableTableJoin():
            return isinstance(outer, TableTableJoin)
        case StreamTableJoin() | StreamStreamJoin():
            equal = []
            if inner.kind in ("INNER", "LEFT"):
                equal.append(inner.left_key)
            if inner.kind in ("INNER", "RIGHT"):
                equal.append(inner.right_key)
            return outer.left_key in equal


def synthetic(join: KeyedJoin) -> bool:
    """Return whether the key of a join's rows is a column of its own, not one of a source."""
    if isinstance(join, TableTableJoin):
        return join.kind == "FULL"
    keys = (join.left_key, join.right_key)
    return all(not isinstance(key, b.Column) or key.name != join.key_name for key in keys)


def window_columns(join: KeyedJoin) -> tuple[str, ...]:
    """Return the bounds of the rows' windows; windowed are all sources of a join, or none."""
    windowed = any(source.window is not None for source in sources(join))
    return tuple(WINDOW_COLUMNS) if windowed else ()


Stateful = Aggregate | KeyedJoin | ForeignStep | Source


@dataclass(frozen=True, slots=True)
class StageInput:
    """Rows of one segment on their way to a stage: their packed key and what they carry.

    ``port`` is the stage input's number in the program. ``parts`` are the lengths of the stretches
    that the carried columns consist of, one for each source: a stretch grows at its end. With
    ``null_keys`` rows whose key has a NULL pass; without, they are dropped. ``keyed``: the stage
    before has made the records for this one, port and key and all. With ``unknown`` the deletion of
    a row that nobody knows passes, under the key that it has. With ``ticks`` the time of a dropped
    record passes. Kafka Streams' joins of streams see each record, also one that has no key there.
    """

    segment: Segment
    stage: int
    port: int
    key: tuple[Bound, ...]
    carried: tuple[Bound, ...]
    parts: tuple[int, ...]
    null_keys: bool = False
    keyed: bool = False
    unknown: bool = False
    ticks: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """Rows of the last segment on their way to the sink; ``rekeyed`` by PARTITION BY.

    ``bare`` is the key of a record without value.
    """

    segment: Segment
    key: tuple[Bound, ...]
    value: tuple[Bound, ...]
    rekeyed: bool
    bare: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stateful step, the inputs that lead to it in the order of its inputs, and its rows.

    ``before`` are the joins on its left that meet under the same key, the innermost first: they are
    done here too. The first two inputs are the sides of the first join, each further input is the
    right side of the next one.
    """

    node: Stateful
    stage_inputs: tuple[StageInput, ...]
    shape: RowShape
    before: tuple[KeyedJoin, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a plan: its sources, its stages in order, the exit."""

    sources: tuple[Source, ...]
    stages: tuple[Stage, ...]
    exit: Exit

    @property
    def stage_inputs(self) -> list[StageInput]:
        """All stage inputs, each at the place of its port."""
        return [stage_input for stage in self.stages for stage_input in stage.stage_inputs]


def layout(sink: Sink) -> Layout:
    """Cut the plan below a sink."""
    cutting = _Cutting()
    segment = cutting.segment(sink.source)
    names = {item.name: item.expr for item in segment.items}
    key = tuple(names[column.name] for column in sink.key)
    value = tuple(names[column.name] for column in sink.value)
    rekeyed = any(isinstance(node, Rekey) for node in nodes(sink))
    bare = _bare(key, segment, cutting.sources) if rekeyed else key
    end = Exit(segment, key, value, rekeyed, bare)
    return Layout(tuple(cutting.sources), tuple(cutting.stages), end)


def _bare(key: tuple[Bound, ...], segment: Segment, sources: Sequence[Source]) -> tuple[Bound, ...]:
    """Return what PARTITION BY makes of a record without value.

    Expressions over the old key, and constants, have their value; what reads another column is
    NULL, even ``x IS NULL``. Pseudo columns belong to the value.
    """
    if segment.entry.kind != "source":
        return key
    cells = source_cells(sources[segment.entry.index])
    known = {c.name for c in cells if isinstance(c.origin, Column) and c.origin.role is Role.KEY}
    return tuple(
        part if all(c.name in known for c in trees.columns(part)) else b.Const(None, type_of(part))
        for part in key
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a source's rows; ``origin`` is the record's column, or a pseudo column's name."""

    name: str
    type: SqlType
    origin: Column | str


def source_cells(source: Source) -> list[Cell]:
    """Return the columns of a source's rows, with where each comes from.

    Pseudo columns first, so that a grown source grows at the end. In a join the names are prefixed;
    the row's own ROWTIME follows then.
    """
    pseudo = PSEUDO_COLUMNS | ({} if source.window is None else WINDOW_COLUMNS)
    cells = [Cell(source.prefix + name, type_, name) for name, type_ in pseudo.items()]
    cells += [Cell(source.prefix + column.name, column.type, column) for column in source.columns]
    if source.prefix:
        cells.append(Cell(ROWTIME, BIGINT, ROWTIME))
    return cells


def source_shape(source: Source) -> RowShape:
    """Return the rows of a source."""
    cells = source_cells(source)
    return RowShape(
        tuple((cell.name, cell.type) for cell in cells),
        times=tuple(index for index, cell in enumerate(cells) if cell.origin == ROWTIME),
        keys=tuple(index for index, cell in enumerate(cells) if _is_key(cell.origin)),
        parts=(len(cells) - bool(source.prefix),),
    )


def _is_key(origin: Column | str) -> bool:
    return isinstance(origin, Column) and origin.role is Role.KEY


def _aggregate_shape(node: Aggregate) -> RowShape:
    """Return the rows of an aggregate, as the processor gives them."""
    columns = [(named.name, type_of(named.expr)) for named in node.group]
    columns += [(fold.name, fold.type) for fold in node.folds]
    time = len(columns)
    columns.append((ROWTIME, BIGINT))
    if node.window is not None:
        columns += WINDOW_COLUMNS.items()
    return RowShape(tuple(columns), (time,), tuple(range(len(node.group))))


def _join_shape(
    node: KeyedJoin, columns: list[tuple[str, SqlType]], parts: tuple[int, ...]
) -> RowShape:
    """Return the rows of a join.

    Its sides' columns, then what its processor adds (``sides.Ending``).
    """
    own: dict[str, SqlType] = {}
    if synthetic(node):
        own[node.key_name] = type_of(node.left_key)
    own |= {name: type_ for name, type_ in WINDOW_COLUMNS.items() if window_columns(node)}
    own[ROWTIME] = BIGINT
    names = [*(name for name, _ in columns), *own]
    key = [node.key_name, *(name for name in WINDOW_COLUMNS if name in own)]
    return RowShape(
        (*columns, *own.items()),
        times=(len(names) - 1,),
        keys=tuple(map(names.index, key)) if node.key_name in names else (),
        parts=parts,
    )


def _carried(segment: Segment) -> tuple[tuple[Named, ...], tuple[int, ...]]:
    """Return the columns of a join's side but those that each join makes, and their stretches."""
    shape = segment.entry.shape
    if shape.parts and [item.name for item in segment.items] == shape.names:
        return segment.items[: sum(shape.parts)], shape.parts
    pseudo = (ROWTIME, *WINDOW_COLUMNS)
    items = tuple(item for item in segment.items if item.name not in pseudo)
    return items, (len(items),)


def _window_of(
    segment: Segment, windows: tuple[str, ...], size_ms: int | None
) -> tuple[Bound, ...]:
    """Return the bounds of a row's window: they are a part of a windowed key.

    With ``size_ms`` the window is as long as that, wherever the source's own windows end.
    """
    names = [item.name for item in segment.items]
    columns = (w if w in names else next(n for n in names if n.endswith("_" + w)) for w in windows)
    own = tuple(b.Column(name, WINDOW_COLUMNS[w]) for name, w in zip(columns, windows, strict=True))
    if size_ms is None or not own:
        return own
    return own[0], b.Arith("+", own[0], b.Const(size_ms, BIGINT), BIGINT)


def _common_size(node: KeyedJoin) -> int | None:
    """Return how long the windows of a join's keys are, where its sources do not agree.

    A key has the start alone of its window: the rows of the first source's windows meet those of
    other lengths that start with them.
    """
    sizes = [s.window.size_ms for s in sources(node) if s.window is not None]
    return sizes[0] if len(set(sizes)) > 1 else None


class _Cutting:
    """The stages and sources that have been cut so far."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.stages: list[Stage] = []
        self._input_count = 0

    def segment(self, plan: Plan) -> Segment:
        """Return the rows that come out of a plan's node."""
        match plan:
            case Source():
                segment = self._source(plan)
                return self._table(plan, segment) if plan.kind == "TABLE" else segment
            case Filter() | Rekey() | Select():
                return extend(self.segment(plan.source), plan)
            case Explode():
                return exploded(self.segment(plan.source), plan)
            case Aggregate():
                return self._aggregate(plan)
            case StreamTableJoin() | StreamStreamJoin() | TableTableJoin():
                return self._join(plan)
            case ForeignKeyJoin():
                return self._foreign(plan)
            case Sink() | EmitFinal():
                return self.segment(plan.source)

    def _source(self, source: Source) -> Segment:
        self.sources.append(source)
        entry = Entry("source", len(self.sources) - 1, source_shape(source))
        return entering(entry, table=source.kind == "TABLE")

    def _table(self, source: Source, segment: Segment) -> Segment:
        """Return a table's changes with the rows they replace: a stage that remembers the rows."""
        shape = segment.entry.shape
        row = tuple(item.expr for item in segment.items)
        stage_input = self._stage_input(segment, tuple(row[index] for index in shape.keys), row)
        # a table's key may have NULLs among its columns
        return self._stage(source, (replace(stage_input, null_keys=True),), shape, table=True)

    def _aggregate(self, node: Aggregate) -> Segment:
        below = self.segment(node.source)
        key = tuple(below.over_entry(named.expr) for named in node.group)
        carried = tuple(below.over_entry(arg) for fold in node.folds for arg in fold.args)
        stage_input = self._stage_input(below, key, carried)
        return self._stage(node, (stage_input,), _aggregate_shape(node), table=True)

    def _join(self, node: KeyedJoin) -> Segment:
        """Return a join, and those on its left that need no other key: one stage does them all."""
        joins = chain(node)
        first = joins[0]
        sides = [self._side(first.left), *(self._side(join.right) for join in joins)]
        keys = [first.left_key, *(join.right_key for join in joins)]
        kept = [first.kind in ("LEFT", "FULL"), *(join.kind in ("RIGHT", "FULL") for join in joins)]
        windows, size_ms = window_columns(node), _common_size(node)
        stage_inputs: list[StageInput] = []
        columns: list[tuple[str, SqlType]] = []
        of_streams = (isinstance(join, StreamStreamJoin) for join in (first, *joins))
        for segment, key, null_keys, streams in zip(sides, keys, kept, of_streams, strict=True):
            items, parts = _carried(segment)
            columns += [(item.name, type_of(item.expr)) for item in items]
            of_key = (key, *_window_of(segment, windows, size_ms))
            stage_input = self._stage_input(
                segment, tuple(map(segment.over_entry, of_key)), tuple(i.expr for i in items)
            )
            unknown = isinstance(node, TableTableJoin) and segment.entry.kind == "stage"
            stage_input = replace(
                stage_input, parts=parts, null_keys=null_keys, unknown=unknown, ticks=streams
            )
            stage_inputs.append(stage_input)
        shape = _join_shape(
            node, columns, tuple(part for stage_input in stage_inputs for part in stage_input.parts)
        )
        table = result_kind(node) == "TABLE"
        return self._stage(node, tuple(stage_inputs), shape, table=table, before=joins[:-1])

    def _foreign(self, node: ForeignKeyJoin) -> Segment:
        """Return a foreign-key join: three stages, see ``ksql.exec.dataflow.foreign``."""
        left, right = self._side(node.left), self._side(node.right)
        (left_items, left_parts), (right_items, right_parts) = _carried(left), _carried(right)
        columns = [(item.name, type_of(item.expr)) for item in (*left_items, *right_items)]
        primary = left.entry.shape.keys
        shape = RowShape(
            (*columns, (ROWTIME, BIGINT)), (len(columns),), primary, (*left_parts, *right_parts)
        )
        key = tuple(left_items[index].expr for index in primary)
        reference, referenced = left.over_entry(node.left_key), right.over_entry(node.right_key)
        rows, of_right = (tuple(i.expr for i in items) for items in (left_items, right_items))
        first = len(self.stages)
        ways = ForeignInputs(
            left=replace(self._stage_input(left, key, (reference, *rows)), null_keys=True),
            subscriptions=self._handed(first + 1, (reference,), rows, left_parts),
            right=replace(self._stage_input(right, (referenced,), of_right), stage=first + 1),
            answered=self._handed(first + 2, key, (*rows, *of_right), shape.parts),
        )
        ways = ways._replace(right=replace(ways.right, parts=right_parts))
        self._stage(ForeignStep(node, "references", ways), (ways.left,), shape, table=True)
        self._stage(
            ForeignStep(node, "rows", ways), (ways.subscriptions, ways.right), shape, table=True
        )
        return self._stage(ForeignStep(node, "results", ways), (ways.answered,), shape, table=True)

    def _handed(
        self, stage: int, key: tuple[Bound, ...], carried: tuple[Bound, ...], parts: tuple[int, ...]
    ) -> StageInput:
        """Return a stage input from the stage before, whose processor keys its records itself."""
        shape = RowShape(tuple((str(index), type_of(e)) for index, e in enumerate(carried)), ())
        segment = entering(Entry("stage", stage - 1, shape), table=True)
        self._input_count += 1
        return StageInput(segment, stage, self._input_count - 1, key, carried, parts, keyed=True)

    def _side(self, plan: Plan) -> Segment:
        """Return a side of a join; a table's rows are remembered by the join itself."""
        return self._source(plan) if isinstance(plan, Source) else self.segment(plan)

    def _stage_input(
        self, segment: Segment, key: tuple[Bound, ...], carried: tuple[Bound, ...]
    ) -> StageInput:
        """Return a stage input to the stage that is cut next."""
        self._input_count += 1
        return StageInput(
            segment, len(self.stages), self._input_count - 1, key, carried, (len(carried),)
        )

    def _stage(
        self,
        node: Stateful,
        stage_inputs: tuple[StageInput, ...],
        shape: RowShape,
        *,
        table: bool,
        before: tuple[KeyedJoin, ...] = (),
    ) -> Segment:
        self.stages.append(Stage(node, stage_inputs, shape, before))
        return entering(Entry("stage", len(self.stages) - 1, shape), table=table)
