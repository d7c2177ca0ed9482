"""Which aggregates fold records before the exchange, and why the others do not.

It is for what may emit less than every change. Without windows any aggregate that merges does so,
except those that may fail. A failure is one record's, not that of all records that were folded with
it. These are users' own, and sums of DECIMAL, which overflow. In windows it must not show at all.
``operators.panes`` keeps late records as they are, and only functions that do not depend on the
order of records are combined. A session's bounds, and so its late records, are found record by
record. Plans of earlier versions count time by bucket, of which a task knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.sql.plan.nodes import Aggregate, EmitFinal, QueryPlan
from ksql.sql.plan.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.exec.operators.folds import Slot
    from ksql.sql.plan.nodes import Fold


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
    if node.window is None:
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


def is_final(plan: QueryPlan) -> bool:
    """Return whether each window is emitted once, when it has closed."""
    return any(isinstance(node, EmitFinal) for node in nodes(plan.sink))


def _apart(reason: str) -> Combining:
    return Combining(f"not combined before the exchange: {reason}")


def _each(node: Aggregate, slots: Sequence[Slot]) -> zip[tuple[Fold, Slot]]:
    return zip(node.folds, slots, strict=True)
