"""Make a new plan the running one's successor: its names, its id and buckets, its state slots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.functions import BUILTINS
from ksql.sql.plan.nodes import Aggregate, Fold, Join, Plan, QueryPlan, Sink
from ksql.sql.plan.walk import generations, nodes, sources, with_children, with_sources
from ksql.sql.upgrade.added_columns import with_later
from ksql.sql.upgrade.filters import with_leftovers
from ksql.sql.upgrade.naming import named_as

if TYPE_CHECKING:
    from ksql.functions import Functions


def align(
    old: QueryPlan, new: QueryPlan, functions: Functions = BUILTINS, generation: int = 0
) -> QueryPlan:
    """Return the new plan with the old one's names, id, buckets, lanes, places and slots.

    Aggregates it adds get slots whose numbers no plan before it has. An attempt that failed may
    have used them, so they are of this attempt's ``generation``.

    Example:
        running ``COUNT(*), SUM(A)`` has slots 0, 1; ``SUM(A), MAX(A)`` gets 1, 2.
    """
    sink = _aligned(named_as(new.sink, old.sink), old.sink, generation)
    assert isinstance(sink, Sink)  # noqa: S101 - a sink aligns to a sink
    sink = _placed(sink, old.sink)
    below = with_later(old.sink.source, sink.source)
    aligned = replace(
        new,
        query_id=old.query_id,
        buckets=old.buckets,
        lanes=old.lanes,
        partitions=old.partitions,
        placement=old.placement,
        sink=replace(sink, source=below),
    )
    return with_leftovers(old, aligned, functions)


def _placed(sink: Sink, old: Sink) -> Sink:
    """Leave the windows of a key where they lie, in the result's topic and in the state."""
    scattered = {source.topic for source in sources(old) if source.scattered}
    below = with_sources(
        sink.source, lambda source: replace(source, scattered=source.topic in scattered)
    )
    return replace(sink, source=below, gathered=old.gathered)


def _aligned(plan: Plan, old: Plan, generation: int) -> Plan:
    """Give the aggregates the running ones' slots; a join's sides are those of the running join."""
    if isinstance(plan, Join):
        join = next((node for node in nodes(old) if isinstance(node, Join)), None)
        sides = (join.left, join.right) if join else (old, old)
        left, right = (
            _aligned(side, running_side, generation)
            for side, running_side in zip((plan.left, plan.right), sides, strict=True)
        )
        return replace(plan, left=left, right=right)
    if isinstance(plan, Aggregate):
        running = next((node for node in nodes(old) if isinstance(node, Aggregate)), None)
        if running is not None:
            old = running.source
            folds, next_slot = _slots(plan.folds, running)
            slots = _generations(running, next_slot, generation)
            same_ttl = plan.ttl_ms == running.ttl_ms
            plan = replace(
                plan,
                folds=folds,
                next_slot=next_slot,
                generations=slots,
                ttl_generation=running.ttl_generation if same_ttl else generation,
            )
    return with_children(plan, lambda child: _aligned(child, old, generation))


def _slots(folds: tuple[Fold, ...], running: Aggregate) -> tuple[tuple[Fold, ...], int]:
    free = list(running.folds)
    next_slot = running.next_slot
    placed = []
    for fold in folds:
        twin = next((old for old in free if same_fold(old, fold)), None)
        if twin is not None:
            free.remove(twin)
            placed.append(replace(fold, slot=twin.slot))
        else:
            placed.append(replace(fold, slot=next_slot))
            next_slot += 1
    return tuple(placed), next_slot


def _generations(running: Aggregate, next_slot: int, generation: int) -> tuple[int, ...]:
    """Return those of the running plan, and this attempt's for each slot that it adds."""
    if next_slot == running.next_slot:
        return running.generations
    return (*generations(running), *(generation,) * (next_slot - running.next_slot))


def same_fold(a: Fold, b: Fold) -> bool:
    """Return whether both compute the same from the same rows, so that one state serves either."""
    return (a.function, a.overload, a.args, a.literals, a.type) == (
        b.function,
        b.overload,
        b.args,
        b.literals,
        b.type,
    )
