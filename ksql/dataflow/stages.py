"""The operator of a stage, made from its plan node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.analysis.bound import type_of
from ksql.dataflow.combining import combining, is_final
from ksql.dataflow.foreign import ForeignStep, foreign_step
from ksql.dataflow.joining import joining
from ksql.dataflow.keybytes import key_order
from ksql.dataflow.lanes import join_order
from ksql.functions.instantiate import instantiate_aggregate
from ksql.plan.nodes import (
    Aggregate,
    QueryPlan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)
from ksql.plan.walk import generations
from ksql.processors.aggregate import AggregateProcessor
from ksql.processors.combine import Combine, compile_combine
from ksql.processors.final import FinalProcessor
from ksql.processors.folds import Folds, Slot, compile_folds
from ksql.processors.panes import PaneFold, compile_panes
from ksql.processors.sessions import SessionProcessor
from ksql.processors.sessionstate import SessionWindows
from ksql.processors.table import TableProcessor
from ksql.processors.windows import Windows

if TYPE_CHECKING:
    from ksql.dataflow.arms import Code, KeyedArm
    from ksql.dataflow.layout import Layout
    from ksql.processors.base import KeyOrder, Processor


class CompiledStage:
    """A stage's processor, made from its plan node."""

    def __init__(
        self, cut: Layout, number: int, plan: QueryPlan, code: Code, *, keep_old: bool
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

    def combine(self, arm: KeyedArm) -> Combine | None:
        """Return how states are combined before the exchange, where the plan allows it."""
        if not self.combined:
            return None
        return compile_combine(self.slots, arm.width, plain=arm.plain_key)

    def panes(self, arm: KeyedArm) -> PaneFold | None:
        """Return how windows are combined before the exchange, where the plan allows it."""
        if not self.by_window:
            return None
        match self.processor:
            case AggregateProcessor(windows=Windows() as windows) | FinalProcessor(windows=windows):
                return compile_panes(self.slots, arm.width, windows, plain=arm.plain_key)
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


def slots_of(node: Aggregate, code: Code) -> list[Slot]:
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
