"""Where a plan is cut: which stateful step runs in which stage, and what flows between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksql.analysis.bound import Bound, type_of
from ksql.dataflow.flow import Entry, Flow, entering, exploded, extend
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
from ksql.types.schema import PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS, Role

Stateful = Aggregate | StreamTableJoin | Source


@dataclass(frozen=True, slots=True)
class Arm:
    """Rows of one flow on their way to a stage: their packed key and what they carry."""

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


@dataclass(slots=True)
class Layout:
    """All of a plan: its sources, its stages in order, the arms between them, the exit."""

    sources: list[Source] = field(default_factory=list)
    stages: list[Stateful] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    exit: Exit | None = None


def layout(sink: Sink) -> Layout:
    """Cut the plan below a sink.

    Raises: NotSupportedYet.
    """
    check_runs(sink)
    result = Layout()
    flow = _flow(sink.source, result)
    names = {item.name: item.expr for item in flow.items}
    key = tuple(names[column.name] for column in sink.key)
    value = tuple(names[column.name] for column in sink.value)
    result.exit = Exit(flow, key, value, any(isinstance(n, Rekey) for n in nodes(sink)))
    return result


def source_columns(source: Source) -> tuple[tuple[str, SqlType], ...]:
    """The columns of a source's rows.

    Pseudo columns first, so that a grown source grows at the end. In a join the names are prefixed;
    the row's own ROWTIME follows then.
    """
    pseudo = list(PSEUDO_COLUMNS.items())
    if source.window is not None:
        pseudo += WINDOW_COLUMNS.items()
    columns = [*pseudo, *((column.name, column.type) for column in source.columns)]
    return tuple((source.prefix + name, type_) for name, type_ in columns)


def _flow(plan: Plan, out: Layout) -> Flow:
    match plan:
        case Source():
            flow = _source_flow(plan, out)
            return _table_flow(plan, flow, out) if plan.kind == "TABLE" else flow
        case Filter() | Rekey() | Select():
            return extend(_flow(plan.source, out), plan)
        case Explode():
            return exploded(_flow(plan.source, out), plan)
        case Aggregate():
            return _aggregate_flow(plan, out)
        case StreamTableJoin():
            return _join_flow(plan, out)
        case Sink():
            return _flow(plan.source, out)
        case EmitFinal() | StreamStreamJoin() | TableTableJoin() | ForeignKeyJoin():
            raise AssertionError(f"{type(plan).__name__} was not refused")


def _source_flow(source: Source, out: Layout) -> Flow:
    out.sources.append(source)
    columns = source_columns(source)
    if source.prefix:
        columns = (*columns, (ROWTIME, BIGINT))
    entry = Entry("source", len(out.sources) - 1, columns)
    return entering(entry, table=source.kind == "TABLE")


def _table_flow(source: Source, flow: Flow, out: Layout) -> Flow:
    """A table's changes with the rows they replace: a stage that remembers the rows."""
    stage = len(out.stages)
    out.stages.append(source)
    key = tuple(
        item.expr
        for item, column in zip(flow.items[-len(source.columns) :], source.columns, strict=True)
        if column.role is Role.KEY
    )
    out.arms.append(Arm(flow, stage, 0, key, tuple(item.expr for item in flow.items)))
    return entering(Entry("stage", stage, flow.entry.columns), table=True)


def key_places(source: Source) -> tuple[int, ...]:
    """Where the key columns stand in a table's rows."""
    before = len(source_columns(source)) - len(source.columns)
    return tuple(before + i for i, c in enumerate(source.columns) if c.role is Role.KEY)


def _aggregate_flow(node: Aggregate, out: Layout) -> Flow:
    below = _flow(node.source, out)
    stage = len(out.stages)
    out.stages.append(node)
    key = tuple(below.over_entry(named.expr) for named in node.group)
    carried = tuple(below.over_entry(arg) for fold in node.folds for arg in fold.args)
    out.arms.append(Arm(below, stage, 0, key, carried))
    return entering(Entry("stage", stage, aggregate_columns(node)), table=True)


def aggregate_columns(node: Aggregate) -> tuple[tuple[str, SqlType], ...]:
    """The columns of an aggregate's rows, in the order in which the processor gives them."""
    columns = [(named.name, type_of(named.expr)) for named in node.group]
    columns += [(fold.name, fold.type) for fold in node.folds]
    columns.append((ROWTIME, BIGINT))
    if node.window is not None:
        columns += WINDOW_COLUMNS.items()
    return tuple(columns)


def _join_flow(node: StreamTableJoin, out: Layout) -> Flow:
    left, right = _flow(node.left, out), _joined_table(node.right, out)
    stage = len(out.stages)
    out.stages.append(node)
    sides = ((left, node.left_key), (right, node.right_key))
    columns: list[tuple[str, SqlType]] = []
    for port, (flow, key) in enumerate(sides):
        items = [item for item in flow.items if item.name != ROWTIME]
        columns += [(item.name, type_of(item.expr)) for item in items]
        carried = tuple(item.expr for item in items)
        out.arms.append(Arm(flow, stage, port, (flow.over_entry(key),), carried))
    columns.append((ROWTIME, BIGINT))
    return entering(Entry("stage", stage, tuple(columns)), table=False)


def _joined_table(plan: Plan, out: Layout) -> Flow:
    """The join's right side: the join itself remembers its rows."""
    return _source_flow(plan, out) if isinstance(plan, Source) else _flow(plan, out)


def right_width(node: StreamTableJoin, out: Layout) -> int:
    """How many columns the table brings into the join."""
    stage = out.stages.index(node)
    arm = next(arm for arm in out.arms if arm.stage == stage and arm.port == 1)
    return len(arm.carried)
