"""Where a plan is cut: which stateful step runs in which stage, and what flows between them.

The layout of every row in a program is made here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis import trees
from ksql.analysis.bound import Bound, Named, type_of
from ksql.dataflow.chain import KeyedJoin, chain, synthetic, window_columns
from ksql.dataflow.flow import Entry, Flow, RowShape, entering, exploded, extend
from ksql.dataflow.foreign import ForeignArms, ForeignStep
from ksql.plan.nodes import (
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
)
from ksql.plan.walk import nodes, result_kind, sources
from ksql.types.model import BIGINT, SqlType
from ksql.types.schema import PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS, Column, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

Stateful = Aggregate | KeyedJoin | ForeignStep | Source


@dataclass(frozen=True, slots=True)
class Arm:
    """Rows of one flow on their way to a stage: their packed key and what they carry.

    ``port`` is the arm's number in the program. ``parts`` are the lengths of the stretches that the
    carried columns consist of, one for each source: a stretch grows at its end. With ``null_keys``
    rows whose key has a NULL pass; without, they are dropped. ``keyed``: the stage before has made
    the records for this one, port and key and all. With ``unknown`` the deletion of a row that
    nobody knows passes, under the key that it has. With ``ticks`` the time of a record passes that
    is dropped: Kafka Streams' joins of streams see each record, also one that has no key there.
    """

    flow: Flow
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
    """Rows of the last flow on their way to the sink; ``rekeyed`` by PARTITION BY.

    ``bare`` is the key of a record without value.
    """

    flow: Flow
    key: tuple[Bound, ...]
    value: tuple[Bound, ...]
    rekeyed: bool
    bare: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stateful step, the arms that lead to it in the order of its inputs, and its rows.

    ``before`` are the joins on its left that meet under the same key, the innermost first: they are
    done here too. The first two arms are the sides of the first join, each further arm is the right
    side of the next one.
    """

    node: Stateful
    arms: tuple[Arm, ...]
    shape: RowShape
    before: tuple[KeyedJoin, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a plan: its sources, its stages in order, the exit."""

    sources: tuple[Source, ...]
    stages: tuple[Stage, ...]
    exit: Exit

    @property
    def arms(self) -> list[Arm]:
        """All arms, each at the place of its port."""
        return [arm for stage in self.stages for arm in stage.arms]


def layout(sink: Sink) -> Layout:
    """Cut the plan below a sink."""
    cutting = _Cutting()
    flow = cutting.flow(sink.source)
    names = {item.name: item.expr for item in flow.items}
    key = tuple(names[column.name] for column in sink.key)
    value = tuple(names[column.name] for column in sink.value)
    rekeyed = any(isinstance(node, Rekey) for node in nodes(sink))
    bare = _bare(key, flow, cutting.sources) if rekeyed else key
    end = Exit(flow, key, value, rekeyed, bare)
    return Layout(tuple(cutting.sources), tuple(cutting.stages), end)


def _bare(key: tuple[Bound, ...], flow: Flow, sources: Sequence[Source]) -> tuple[Bound, ...]:
    """Return what PARTITION BY makes of a record without value.

    Expressions over the old key, and constants, have their value; what reads another column is
    NULL, even ``x IS NULL``. Pseudo columns belong to the value.
    """
    if flow.entry.kind != "source":
        return key
    cells = source_cells(sources[flow.entry.index])
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


def _carried(flow: Flow) -> tuple[tuple[Named, ...], tuple[int, ...]]:
    """Return the columns of a join's side but those that each join makes, and their stretches."""
    shape = flow.entry.shape
    if shape.parts and [item.name for item in flow.items] == shape.names:
        return flow.items[: sum(shape.parts)], shape.parts
    pseudo = (ROWTIME, *WINDOW_COLUMNS)
    items = tuple(item for item in flow.items if item.name not in pseudo)
    return items, (len(items),)


def _window_of(flow: Flow, windows: tuple[str, ...], size_ms: int | None) -> tuple[Bound, ...]:
    """Return the bounds of a row's window: they are a part of a windowed key.

    With ``size_ms`` the window is as long as that, wherever the source's own windows end.
    """
    names = [item.name for item in flow.items]
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
        self._arms = 0

    def flow(self, plan: Plan) -> Flow:
        """Return the rows that come out of a plan's node."""
        match plan:
            case Source():
                flow = self._source(plan)
                return self._table(plan, flow) if plan.kind == "TABLE" else flow
            case Filter() | Rekey() | Select():
                return extend(self.flow(plan.source), plan)
            case Explode():
                return exploded(self.flow(plan.source), plan)
            case Aggregate():
                return self._aggregate(plan)
            case StreamTableJoin() | StreamStreamJoin() | TableTableJoin():
                return self._join(plan)
            case ForeignKeyJoin():
                return self._foreign(plan)
            case Sink() | EmitFinal():
                return self.flow(plan.source)

    def _source(self, source: Source) -> Flow:
        self.sources.append(source)
        entry = Entry("source", len(self.sources) - 1, source_shape(source))
        return entering(entry, table=source.kind == "TABLE")

    def _table(self, source: Source, flow: Flow) -> Flow:
        """Return a table's changes with the rows they replace: a stage that remembers the rows."""
        shape = flow.entry.shape
        row = tuple(item.expr for item in flow.items)
        arm = self._arm(flow, tuple(row[index] for index in shape.keys), row)
        # a table's key may have NULLs among its columns
        return self._stage(source, (replace(arm, null_keys=True),), shape, table=True)

    def _aggregate(self, node: Aggregate) -> Flow:
        below = self.flow(node.source)
        key = tuple(below.over_entry(named.expr) for named in node.group)
        carried = tuple(below.over_entry(arg) for fold in node.folds for arg in fold.args)
        arm = self._arm(below, key, carried)
        return self._stage(node, (arm,), _aggregate_shape(node), table=True)

    def _join(self, node: KeyedJoin) -> Flow:
        """Return a join, and those on its left that need no other key: one stage does them all."""
        joins = chain(node)
        first = joins[0]
        sides = [self._side(first.left), *(self._side(join.right) for join in joins)]
        keys = [first.left_key, *(join.right_key for join in joins)]
        kept = [first.kind in ("LEFT", "FULL"), *(join.kind in ("RIGHT", "FULL") for join in joins)]
        windows, size_ms = window_columns(node), _common_size(node)
        arms: list[Arm] = []
        columns: list[tuple[str, SqlType]] = []
        of_streams = (isinstance(join, StreamStreamJoin) for join in (first, *joins))
        for flow, key, null_keys, streams in zip(sides, keys, kept, of_streams, strict=True):
            items, parts = _carried(flow)
            columns += [(item.name, type_of(item.expr)) for item in items]
            of_key = (key, *_window_of(flow, windows, size_ms))
            arm = self._arm(flow, tuple(map(flow.over_entry, of_key)), tuple(i.expr for i in items))
            unknown = isinstance(node, TableTableJoin) and flow.entry.kind == "stage"
            arm = replace(arm, parts=parts, null_keys=null_keys, unknown=unknown, ticks=streams)
            arms.append(arm)
        shape = _join_shape(node, columns, tuple(part for arm in arms for part in arm.parts))
        table = result_kind(node) == "TABLE"
        return self._stage(node, tuple(arms), shape, table=table, before=joins[:-1])

    def _foreign(self, node: ForeignKeyJoin) -> Flow:
        """Return a foreign-key join: three stages, see ``ksql.dataflow.foreign``."""
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
        ways = ForeignArms(
            left=replace(self._arm(left, key, (reference, *rows)), null_keys=True),
            asked=self._handed(first + 1, (reference,), rows, left_parts),
            right=replace(self._arm(right, (referenced,), of_right), stage=first + 1),
            answered=self._handed(first + 2, key, (*rows, *of_right), shape.parts),
        )
        ways = ways._replace(right=replace(ways.right, parts=right_parts))
        self._stage(ForeignStep(node, "references", ways), (ways.left,), shape, table=True)
        self._stage(ForeignStep(node, "rows", ways), (ways.asked, ways.right), shape, table=True)
        return self._stage(ForeignStep(node, "results", ways), (ways.answered,), shape, table=True)

    def _handed(
        self, stage: int, key: tuple[Bound, ...], carried: tuple[Bound, ...], parts: tuple[int, ...]
    ) -> Arm:
        """Return an arm from the stage before, whose processor keys its records itself."""
        shape = RowShape(tuple((str(index), type_of(e)) for index, e in enumerate(carried)), ())
        flow = entering(Entry("stage", stage - 1, shape), table=True)
        self._arms += 1
        return Arm(flow, stage, self._arms - 1, key, carried, parts, keyed=True)

    def _side(self, plan: Plan) -> Flow:
        """Return a side of a join; a table's rows are remembered by the join itself."""
        return self._source(plan) if isinstance(plan, Source) else self.flow(plan)

    def _arm(self, flow: Flow, key: tuple[Bound, ...], carried: tuple[Bound, ...]) -> Arm:
        """Return an arm to the stage that is cut next."""
        self._arms += 1
        return Arm(flow, len(self.stages), self._arms - 1, key, carried, (len(carried),))

    def _stage(
        self,
        node: Stateful,
        arms: tuple[Arm, ...],
        shape: RowShape,
        *,
        table: bool,
        before: tuple[KeyedJoin, ...] = (),
    ) -> Flow:
        self.stages.append(Stage(node, arms, shape, before))
        return entering(Entry("stage", len(self.stages) - 1, shape), table=table)
