"""The operator of a stage, made from its plan node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.exec.dataflow.combining import combining, is_final
from ksql.exec.dataflow.foreign import ForeignStep, foreign_step
from ksql.exec.dataflow.joining import joining
from ksql.exec.dataflow.partitioning.keybytes import key_order
from ksql.exec.dataflow.partitioning.stream_partitions import join_order
from ksql.exec.operators.aggregate import AggregateProcessor
from ksql.exec.operators.folds import Folds, Slot, compile_folds
from ksql.exec.operators.panes import PaneFold, compile_panes
from ksql.exec.operators.partial_aggregation import Combine, compile_combine
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import SessionWindows
from ksql.exec.operators.suppress_windows import FinalProcessor
from ksql.exec.operators.table import TableProcessor
from ksql.exec.operators.windows import Windows
from ksql.functions.instantiate import instantiate_aggregate
from ksql.sql.binder.bound import type_of
from ksql.sql.plan.nodes import (
    Aggregate,
    QueryPlan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)
from ksql.sql.plan.walk import generations

if TYPE_CHECKING:
    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.stage_inputs import CompileContext, KeyedInput
    from ksql.exec.operators.base import KeyOrder, Processor


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
    every_change = plan.every_change
    match _windows(node):
        case SessionWindows() as sessions:
            return SessionProcessor(folds, sessions, every_change, keep_old, len(node.folds))
        case windows:
            return AggregateProcessor(folds, windows, every_change, combined, keep_old)


def _final(node: Aggregate, folds: Folds, order: KeyOrder) -> Processor:
    match _windows(node):
        case SessionWindows() as sessions:
            return SessionProcessor(folds, sessions, True, False, len(node.folds), order)
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
