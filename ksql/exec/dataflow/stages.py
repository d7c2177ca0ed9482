"""Makes the operator of a stage from its node: aggregates, joins; decides who combines early.

Folding before the exchange is for what may emit less than every change. Without windows any
aggregate that merges does so, except those that may fail and those whose rows expire. A failure is
one record's, not that of all records that were folded with it. These are users' own, and sums of
DECIMAL, which overflow. In windows it must not show at all. ``operators.panes`` keeps late records
as they are, and only functions that do not depend on the order of records are combined. A session's
bounds, and so its late records, are found record by record. Plans of earlier versions count time by
bucket, of which a task knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core import Settings
from ksql.exec.dataflow.foreign import ForeignStep, foreign_step
from ksql.exec.dataflow.layout import KeyedJoin, Layout, Stage, synthetic, window_columns
from ksql.exec.dataflow.partitioning.key_routing import join_order
from ksql.exec.dataflow.partitioning.keybytes import key_order
from ksql.exec.operators.aggregate import AggregateProcessor
from ksql.exec.operators.chain import ChainProcessor, Link
from ksql.exec.operators.commit_intervals import COMMIT_INTERVAL, CommitIntervals
from ksql.exec.operators.expiry import ExpiringProcessor, Expiry
from ksql.exec.operators.folds import Folds, Slot, compile_folds
from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import JoinProcessor, TableJoinProcessor
from ksql.exec.operators.joining.streams import StreamJoinProcessor, Within
from ksql.exec.operators.panes import PaneFold, compile_panes
from ksql.exec.operators.partial_aggregation import Combine, compile_combine
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import SessionWindows
from ksql.exec.operators.suppress import FinalProcessor
from ksql.exec.operators.table import TableProcessor
from ksql.exec.operators.windows import Windows
from ksql.functions import instantiate_aggregate
from ksql.sql.binder import type_of
from ksql.sql.plan import (
    Aggregate,
    EmitFinal,
    Fold,
    JoinWindow,
    QueryPlan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    generations,
)
from ksql.sql.plan.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.exec.dataflow.stage_inputs import CompileContext, KeyedInput
    from ksql.exec.operators.base import KeyOrder, PausingProcessor, Processor


class CompiledStage:
    """A stage's processor, made from its plan node."""

    def __init__(
        self, cut: Layout, number: int, plan: QueryPlan, code: CompileContext, *, keep_old: bool
    ) -> None:
        stage = cut.stages[number]
        self.slots: list[Slot] = []
        #: Whether all records that come here stand for those that were combined, in no order.
        self.combined = False
        #: Whether some do so, each for records of one group and the same windows.
        self.by_window = False
        self.processor: Processor
        match stage.node:
            case Aggregate() as node:
                self.slots = slots_of(node, code)
                folds = compile_folds(self.slots, generations(node))
                if number == 0:
                    how = combining(plan, node, self.slots)
                    self.combined, self.by_window = how.by_group, how.by_window
                partial = self.combined or self.by_window
                if is_final(plan):
                    self.processor = _final(node, folds, key_order(node, plan.sink))
                else:
                    self.processor = _aggregate(node, folds, plan, partial, keep_old)
            case Source():
                self.processor = TableProcessor(len(stage.shape.columns))
            case StreamTableJoin() | StreamStreamJoin() | TableTableJoin():
                self.processor = joining(stage, join_order(cut, stage))
            case ForeignStep() as step:
                self.processor = foreign_step(step)

    def combine(self, stage_input: KeyedInput) -> Combine | None:
        """Return how states are combined before the exchange, where the plan allows it."""
        if not self.combined:
            return None
        return compile_combine(self.slots, stage_input.width, plain=stage_input.plain_key)

    def panes(self, stage_input: KeyedInput) -> PaneFold | None:
        """Return how windows are combined before the exchange, where the plan allows it."""
        if not self.by_window:
            return None
        match self.processor:
            case AggregateProcessor(windows=Windows() as windows) | FinalProcessor(windows=windows):
                return compile_panes(
                    self.slots, stage_input.width, windows, plain=stage_input.plain_key
                )
            case other:
                raise AssertionError(f"{other} has no windows")


def _aggregate(
    node: Aggregate, folds: Folds, plan: QueryPlan, combined: bool, keep_old: bool
) -> Processor:
    intervals = commit_intervals(plan)
    match _windows(node):
        case SessionWindows() as sessions:
            return SessionProcessor(folds, sessions, intervals, keep_old, len(node.folds))
        case None if node.ttl_ms:
            expiry = Expiry(node.ttl_ms, node.ttl_generation)
            return ExpiringProcessor(folds, None, intervals, False, keep_old, expiry)
        case windows:
            return AggregateProcessor(folds, windows, intervals, combined, keep_old)


def _final(node: Aggregate, folds: Folds, order: KeyOrder) -> Processor:
    match _windows(node):
        case SessionWindows() as sessions:
            return SessionProcessor(folds, sessions, None, False, len(node.folds), order)
        case Windows() as windows:
            return FinalProcessor(folds, windows, order)
        case None:
            raise AssertionError("EMIT FINAL without a WINDOW was not refused")


def _windows(node: Aggregate) -> Windows | SessionWindows | None:
    window = node.window
    if window is None:
        return None
    if window.kind == "SESSION":
        return SessionWindows(window.size_ms, window.grace_ms, window.retention_ms)
    return Windows(window.size_ms, window.advance_ms, window.grace_ms, window.retention_ms)


def slots_of(node: Aggregate, code: CompileContext) -> list[Slot]:
    """Return the aggregates' functions and their places.

    Raises: UnknownFunction and OverloadGone.
    """
    slots, start = [], 0
    for fold in node.folds:
        function = instantiate_aggregate(
            code.functions.get(fold.function),
            fold.overload,
            [type_of(arg) for arg in fold.args],
            fold.literals,
            code.settings,
        )
        width = len(fold.args)
        slots.append(Slot(fold.slot, function, tuple(range(start, start + width))))
        start += width
    return slots


DAY_MS = 24 * 3_600_000
NO_PORT = -1
"""The port of rows that a join hands to the next one without an exchange."""


def joining(stage: Stage, order: KeyOrder) -> PausingProcessor:
    """Return the processor of a stage that joins; ``order`` is that of its keys."""
    assert isinstance(stage.node, KeyedJoin)  # noqa: S101 - narrows the type for the only caller
    joins = (*stage.before, stage.node)
    sides = [Side(stage_input.port, stage_input.parts) for stage_input in stage.stage_inputs]
    left, *rights = sides
    links = []
    for join, right in zip(joins, rights, strict=True):
        timed = isinstance(join, TableTableJoin) and left.port == NO_PORT
        links.append(
            Link(
                _processor(join, left, right, order, timed=timed),
                frozenset((left.port, right.port)),
                left.width,
                join.kind in ("LEFT", "FULL"),
                timed,
            )
        )
        left = Side(NO_PORT, (*left.parts, *right.parts))
    return links[0].processor if len(links) == 1 else ChainProcessor(tuple(links))


def _processor(
    join: KeyedJoin, left: Side, right: Side, order: KeyOrder, *, timed: bool
) -> PausingProcessor:
    ending = Ending(key=synthetic(join), windowed=bool(window_columns(join)))
    match join:
        case StreamTableJoin():
            return JoinProcessor(join.kind == "LEFT", right, ending)
        case StreamStreamJoin(kind=kind):
            outer = kind in ("LEFT", "FULL"), kind in ("RIGHT", "FULL")
            return StreamJoinProcessor(left, right, *outer, _within(join.window), ending, order)
        case TableTableJoin(kind=kind):
            kept = kind in ("LEFT", "FULL"), kind in ("RIGHT", "FULL")
            return TableJoinProcessor(left, right, *kept, ending, timed)


def _within(window: JoinWindow) -> Within:
    """Return the window; without GRACE PERIOD the grace is what twice ``before`` leaves of a day.

    Source: Kafka Streams' ``JoinWindows.of``.
    """
    eager = window.grace_ms is None
    grace = max(DAY_MS - 2 * window.before_ms, 0) if window.grace_ms is None else window.grace_ms
    return Within(window.before_ms, window.after_ms, grace, eager)


@dataclass(frozen=True, slots=True)
class Combining:
    """By what records are folded before the exchange, if by anything; in words for EXPLAIN."""

    words: str
    by_group: bool = False
    by_window: bool = False


def combining(plan: QueryPlan, node: Aggregate, slots: Sequence[Slot]) -> Combining:
    """Return how an aggregate over a source combines its records."""
    if plan.every_change and not is_final(plan):
        return _apart("every change is emitted")
    if node.ttl_ms:
        return _apart("rows expire record by record")
    if node.window is None:
        if plan.lanes:  # it had a RETENTION_MS once
            return _apart("stream partitions are kept apart")
        unmerged = [fold.name for fold, slot in _each(node, slots) if slot.function.merge is None]
        if unmerged:
            return _apart(f"{unmerged[0]} cannot be merged")
        unsure = [fold.name for fold, slot in _each(node, slots) if slot.function.raises]
        if unsure:
            return _apart(f"{unsure[0]} may fail for a record")
        return Combining("combined by group before the exchange", by_group=True)
    if node.window.kind == "SESSION":
        return _apart("sessions grow record by record")
    if not plan.lanes:
        return _apart("stream time is that of a bucket")
    ordered = [fold.name for fold, slot in _each(node, slots) if not slot.function.unordered]
    if ordered:
        return _apart(f"{ordered[0]} goes by the order of records")
    return Combining("combined by window before the exchange", by_window=True)


def commit_intervals(plan: QueryPlan) -> CommitIntervals | None:
    """Return in what intervals a group has one change; None if all changes are emitted.

    With EMIT FINAL these are the last ones of windows.
    """
    if plan.every_change or is_final(plan):
        return None
    stated = Settings(dict(plan.settings)).number(COMMIT_INTERVAL)
    return CommitIntervals(max(stated, 1))


def is_final(plan: QueryPlan) -> bool:
    """Return whether each window is emitted once, when it has closed."""
    return any(isinstance(node, EmitFinal) for node in nodes(plan.sink))


def _apart(reason: str) -> Combining:
    return Combining(f"not combined before the exchange: {reason}")


def _each(node: Aggregate, slots: Sequence[Slot]) -> zip[tuple[Fold, Slot]]:
    return zip(node.folds, slots, strict=True)
