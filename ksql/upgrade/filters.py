"""Conditions of two plans compared, and what the rows that passed before ask of the new plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis import trees
from ksql.plan.nodes import Aggregate, Explode, Filter, Plan, QueryPlan, Select
from ksql.plan.walk import result_kind
from ksql.upgrade.calls import is_volatile
from ksql.upgrade.settings import bearing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.analysis.bound import Bound
    from ksql.functions.registry import Functions

Passive = Filter | Explode | Select
"""Steps that remember nothing: they may come, change and go."""


def passive(plan: Plan) -> tuple[list[Passive], Plan]:
    """Return the steps on top that remember nothing, and the first one below that does."""
    steps: list[Passive] = []
    while isinstance(plan, Passive):
        steps.append(plan)
        plan = plan.source
    return steps, plan


def conditions(steps: Sequence[Passive], clause: str) -> tuple[Bound, ...]:
    """Return the conditions of a clause, one by one, in the order of the text."""
    filters = [step for step in steps if isinstance(step, Filter) and step.clause == clause]
    return tuple(part for step in filters for part in _conjuncts(step.predicate))


def same_conditions(old: Sequence[Bound], new: Sequence[Bound], functions: Functions) -> bool:
    """Return whether the same rows pass: all must hold, so neither order nor number counts.

    The number of those that call RANDOM and its like does. Types count: ``1.0`` and ``1E0`` are
    shown alike but are not the same.
    """
    return _counted(old, functions) == _counted(new, functions)


def _counted(parts: Sequence[Bound], functions: Functions) -> Counter[str]:
    """Count the conditions; each counts once, whose value is the same each time."""
    counts = Counter(map(repr, parts))
    volatile = {repr(part) for part in parts if is_volatile(part, functions)}
    return Counter({text: n if text in volatile else 1 for text, n in counts.items()})


def _conjuncts(predicate: Bound) -> Iterator[Bound]:
    if isinstance(predicate, b.Logical) and predicate.op == "AND":
        yield from _conjuncts(predicate.left)
        yield from _conjuncts(predicate.right)
    else:
        yield predicate


# --- rows that passed before


def with_leftovers(old: QueryPlan, new: QueryPlan, functions: Functions) -> QueryPlan:
    """Mark the plan if its result may hold rows that its filter of a table rejects.

    That is so once a filter has changed, and stays so through all later replacements: a row
    without a later change is still there.

    Example:
        running ``HAVING N > 1``; ``HAVING N > 5`` deletes also what it never let pass.
    """
    before, _ = passive(old.sink.source)
    after, core = passive(new.sink.source)
    if result_kind(core) != "TABLE" or not any(isinstance(step, Filter) for step in after):
        return new
    inherited = any(isinstance(step, Filter) and step.leftovers for step in before)
    if not inherited and _passing(old, functions) == _passing(new, functions):
        return new
    return replace(new, sink=replace(new.sink, source=_marked(new.sink.source)))


def other_rows(old: QueryPlan, new: QueryPlan, functions: Functions) -> bool:
    """Return whether other rows of a table pass than before: those already there stay."""
    steps, core = passive(new.sink.source)
    filtered = any(isinstance(step, Filter) for step in (*passive(old.sink.source)[0], *steps))
    if not filtered or result_kind(core) != "TABLE":
        return False
    return _passing(old, functions) != _passing(new, functions)


def _marked(plan: Plan) -> Plan:
    match plan:
        case Filter():
            return replace(plan, source=_marked(plan.source), leftovers=True)
        case Explode() | Select():
            return replace(plan, source=_marked(plan.source))
        case _:
            return plan


def _passing(plan: QueryPlan, functions: Functions) -> tuple[object, ...]:
    """Return all that decides which rows of the result pass."""
    steps, core = passive(plan.sink.source)
    parts = [part for clause in ("WHERE", "HAVING") for part in conditions(steps, clause)]
    read = {column.name for part in parts for column in trees.columns(part)}
    folds = core.folds if isinstance(core, Aggregate) else ()
    used = [replace(fold, slot=0) for fold in folds if fold.name in read]
    settings = bearing(plan.settings, parts, [fold.function for fold in used])
    return _counted(parts, functions), sorted(map(repr, used)), settings
