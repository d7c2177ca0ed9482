"""Compares filters of old and new plan; marks results that may hold rows the new filter rejects."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.plan.nodes import Aggregate, Explode, Filter, Fold, Plan, QueryPlan, Select
from ksql.sql.plan.walk import calls, is_volatile, result_kind
from ksql.sql.upgrade.settings import computed_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.functions import Functions
    from ksql.sql.binder.bound import Bound

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
    return marked(new)


def other_rows(old: QueryPlan, new: QueryPlan, functions: Functions) -> bool:
    """Return whether other rows of a table pass than before: those already there stay."""
    steps, core = passive(new.sink.source)
    filtered = any(isinstance(step, Filter) for step in (*passive(old.sink.source)[0], *steps))
    if not filtered or result_kind(core) != "TABLE":
        return False
    return _passing(old, functions) != _passing(new, functions)


def marked(plan: QueryPlan) -> QueryPlan:
    """Return the plan with its filters taken to have let other rows pass before."""
    return replace(plan, sink=replace(plan.sink, source=_marked(plan.sink.source)))


def deciding(plan: QueryPlan) -> set[str]:
    """Return the functions that decide which rows of a table are in the result."""
    steps, core = passive(plan.sink.source)
    if result_kind(core) != "TABLE" or not any(isinstance(step, Filter) for step in steps):
        return set()
    parts, used = _conditions_and_folds(plan)
    return {call.function for call in calls((*parts, *used))} | {fold.function for fold in used}


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
    parts, used = _conditions_and_folds(plan)
    basis = computed_with(plan, parts, deciding(plan))
    return _counted(parts, functions), sorted(map(repr, used)), basis


def _conditions_and_folds(plan: QueryPlan) -> tuple[tuple[Bound, ...], tuple[Fold, ...]]:
    """Return the conditions on rows of the result, and the aggregates that they read."""
    steps, core = passive(plan.sink.source)
    parts = (*conditions(steps, "WHERE"), *conditions(steps, "HAVING"))
    read = {column.name for part in parts for column in trees.columns(part)}
    folds = core.folds if isinstance(core, Aggregate) else ()
    return parts, tuple(replace(fold, slot=0) for fold in folds if fold.name in read)
