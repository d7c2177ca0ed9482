"""Where a plan is cut: which stateful step runs in which stage, and what flows between them.

The layout of every row in a program is made here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ksql.analysis.bound import Bound, type_of
from ksql.dataflow.flow import Entry, Flow, RowShape, entering, exploded, extend
from ksql.dataflow.lowering import check_runs
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
from ksql.plan.walk import nodes
from ksql.types.model import BIGINT, SqlType
from ksql.types.schema import PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS, Column, Role

Stateful = Aggregate | StreamTableJoin | Source


@dataclass(frozen=True, slots=True)
class Arm:
    """Rows of one flow on their way to a stage: their packed key and what they carry.

    ``port`` is the arm's number in the program.
    """

    flow: Flow
    stage: int
    port: int
    key: tuple[Bound, ...]
    carried: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """Rows of the last flow on their way to the sink; ``rekeyed`` by PARTITION BY."""

    flow: Flow
    key: tuple[Bound, ...]
    value: tuple[Bound, ...]
    rekeyed: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A stateful step, the arms that lead to it in the order of its inputs, and its rows."""

    node: Stateful
    arms: tuple[Arm, ...]
    shape: RowShape


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
    """Cut the plan below a sink.

    Raises: NotSupportedYet.
    """
    check_runs(sink)
    cutting = _Cutting()
    flow = cutting.flow(sink.source)
    names = {item.name: item.expr for item in flow.items}
    key = tuple(names[column.name] for column in sink.key)
    value = tuple(names[column.name] for column in sink.value)
    rekeyed = any(isinstance(node, Rekey) for node in nodes(sink))
    return Layout(tuple(cutting.sources), tuple(cutting.stages), Exit(flow, key, value, rekeyed))


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a source's rows; ``origin`` is the record's column, or a pseudo column's name."""

    name: str
    type: SqlType
    origin: Column | str


def source_cells(source: Source) -> list[Cell]:
    """The columns of a source's rows, with where each comes from.

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
    """The rows of a source."""
    cells = source_cells(source)
    return RowShape(
        tuple((cell.name, cell.type) for cell in cells),
        times=tuple(place for place, cell in enumerate(cells) if cell.origin == ROWTIME),
        keys=tuple(place for place, cell in enumerate(cells) if _is_key(cell.origin)),
    )


def _is_key(origin: Column | str) -> bool:
    return isinstance(origin, Column) and origin.role is Role.KEY


def _aggregate_shape(node: Aggregate) -> RowShape:
    """The rows of an aggregate, as the processor gives them."""
    columns = [(named.name, type_of(named.expr)) for named in node.group]
    columns += [(fold.name, fold.type) for fold in node.folds]
    time = len(columns)
    columns.append((ROWTIME, BIGINT))
    if node.window is not None:
        columns += WINDOW_COLUMNS.items()
    return RowShape(tuple(columns), (time,), tuple(range(len(node.group))))


class _Cutting:
    """What has been cut so far."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.stages: list[Stage] = []
        self._arms = 0

    def flow(self, plan: Plan) -> Flow:
        """The rows that come out of a plan's node."""
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
            case StreamTableJoin():
                return self._join(plan)
            case Sink():
                return self.flow(plan.source)
            case EmitFinal() | StreamStreamJoin() | TableTableJoin() | ForeignKeyJoin():
                raise AssertionError(f"{type(plan).__name__} was not refused")

    def _source(self, source: Source) -> Flow:
        self.sources.append(source)
        entry = Entry("source", len(self.sources) - 1, source_shape(source))
        return entering(entry, table=source.kind == "TABLE")

    def _table(self, source: Source, flow: Flow) -> Flow:
        """A table's changes with the rows they replace: a stage that remembers the rows."""
        shape = flow.entry.shape
        row = tuple(item.expr for item in flow.items)
        arm = self._arm(flow, tuple(row[place] for place in shape.keys), row)
        return self._stage(source, (arm,), shape, table=True)

    def _aggregate(self, node: Aggregate) -> Flow:
        below = self.flow(node.source)
        key = tuple(below.over_entry(named.expr) for named in node.group)
        carried = tuple(below.over_entry(arg) for fold in node.folds for arg in fold.args)
        arm = self._arm(below, key, carried)
        return self._stage(node, (arm,), _aggregate_shape(node), table=True)

    def _join(self, node: StreamTableJoin) -> Flow:
        left, right = self.flow(node.left), self._joined_table(node.right)
        arms: list[Arm] = []
        columns: list[tuple[str, SqlType]] = []
        for flow, key in ((left, node.left_key), (right, node.right_key)):
            items = [item for item in flow.items if item.name != ROWTIME]
            columns += [(item.name, type_of(item.expr)) for item in items]
            carried = tuple(item.expr for item in items)
            arms.append(self._arm(flow, (flow.over_entry(key),), carried))
        shape = RowShape((*columns, (ROWTIME, BIGINT)), (len(columns),))
        return self._stage(node, tuple(arms), shape, table=False)

    def _joined_table(self, plan: Plan) -> Flow:
        """The join's right side: the join itself remembers its rows."""
        return self._source(plan) if isinstance(plan, Source) else self.flow(plan)

    def _arm(self, flow: Flow, key: tuple[Bound, ...], carried: tuple[Bound, ...]) -> Arm:
        """An arm to the stage that is cut next."""
        self._arms += 1
        return Arm(flow, len(self.stages), self._arms - 1, key, carried)

    def _stage(
        self, node: Stateful, arms: tuple[Arm, ...], shape: RowShape, *, table: bool
    ) -> Flow:
        self.stages.append(Stage(node, arms, shape))
        return entering(Entry("stage", len(self.stages) - 1, shape), table=table)
