"""KLIP-28's characteristics of a query and of the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.sql.plan import nodes as p
from ksql.sql.plan.walk import is_volatile, nodes
from ksql.sql.upgrade.verdict import Guarantee, Trait, UpgradeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.functions import Functions


def traits(plan: p.QueryPlan, functions: Functions) -> tuple[Trait, ...]:
    """Return the query's characteristics; ``simple`` alone if it has none of the others."""
    plan_traits: list[Trait] = []
    all_nodes = list(nodes(plan.sink))
    aggregates = [node for node in all_nodes if isinstance(node, p.Aggregate)]
    joins = any(isinstance(node, p.Join) for node in all_nodes)
    stages = _stages(plan.sink)
    if stages:
        plan_traits.append("stateful")
    if any(node.window for node in aggregates) or plan.sink.window:
        plan_traits.append("windowed")
    if joins:
        plan_traits.append("joined")
    if stages > 1:
        plan_traits.append("multistage")
    if any(is_volatile(node, functions) for node in all_nodes):
        plan_traits.append("nondeterministic")
    return tuple(plan_traits) or ("simple",)


def keeps_state(plan: p.Plan) -> bool:
    """Return whether a query of this plan remembers anything but its offsets."""
    return _stages(plan) > 0


def _stages(plan: p.Plan, *, kept: bool = False) -> int:
    """Count the steps that remember anything; ``kept``: the step above keeps the plan's rows.

    Tables keep the rows that their changes replace; for a join's right side the join does.
    """
    match plan:
        case p.Source():
            return int(plan.kind == "TABLE" and not kept)
        case p.Aggregate():
            return 1 + _stages(plan.source)
        case p.StreamTableJoin():
            return 1 + _stages(plan.left) + _stages(plan.right, kept=True)
        case p.ForeignKeyJoin():
            return 3  # both sides are sources, whose rows it keeps
        case p.StreamStreamJoin() | p.TableTableJoin():
            return 1 + _stages(plan.left, kept=True) + _stages(plan.right, kept=True)
        case p.Filter() | p.Rekey() | p.Explode() | p.Select() | p.EmitFinal() | p.Sink():
            return _stages(plan.source)


def guarantees(
    classes: tuple[UpgradeClass, ...], notes: Sequence[str], *, exactly_once: bool
) -> tuple[Guarantee, ...]:
    """Return the guarantees that hold across the switch, in KLIP-28's terms.

    ``notes`` say what the results lack from there on.
    """
    once = (
        "each input is processed once, by the old or by the new plan"
        if exactly_once
        else "at_least_once: after a crash outputs may be written twice; "
        "the switch itself adds none"
    )
    return (
        _backfill(classes, notes),
        Guarantee("cascading", True, "queries that read the result keep their columns"),
        Guarantee("exactly once", exactly_once, once),
        Guarantee("ordered", True, "one offset per partition separates the old plan from the new"),
        Guarantee("live", False, "the query rests between its last old and first new batch"),
    )


def _backfill(classes: tuple[UpgradeClass, ...], notes: Sequence[str]) -> Guarantee:
    if classes == ("transparent",):
        return Guarantee("backfill", True, "results before the switch are the same ones")
    note = "; ".join(notes) or "records before the switch are not recomputed"
    return Guarantee("backfill", False, note)
