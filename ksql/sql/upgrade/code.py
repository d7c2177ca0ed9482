"""The code of the users' functions that a plan calls: what was computed with other code.

Source: docs/user-functions.md#which-code-runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.sql.plan.nodes import Aggregate, Explode, Plan, QueryPlan
from ksql.sql.plan.walk import calls, nodes, result_kind
from ksql.sql.upgrade.filters import deciding, marked
from ksql.sql.upgrade.settings import remembered
from ksql.sql.upgrade.verdict import Difference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ksql.functions import Functions

Code = tuple[tuple[str, str], ...]
"""Names of users' functions with the digests of their code, in the order of the names."""


def code_of(plan: Plan, functions: Functions) -> Code:
    """Return the users' functions that a plan calls, as they are now."""
    called = {name: functions.find(name) for name in _called(plan)}
    return tuple(
        sorted(
            (name, function.code) for name, function in called.items() if function and function.code
        )
    )


def other_code(plan: QueryPlan, functions: Functions) -> frozenset[str]:
    """Return the functions whose code is another one now than when the plan was made.

    What a plan of an earlier version was made with is unknown, and not in it.
    """
    return frozenset(
        name
        for name, digest in plan.code
        if (function := functions.find(name)) is not None and function.code != digest
    )


def as_run(plan: QueryPlan, others: Collection[str]) -> QueryPlan:
    """Return the plan as it runs where these functions have, or once had, other code.

    A row of a table that their code let pass is in the result; this code may not.
    """
    if not others or not deciding(plan) & set(others):
        return plan
    return marked(plan)


def hazards(plan: QueryPlan, others: Collection[str]) -> tuple[str, ...]:
    """Describe what the state of a query holds that these functions' former code computed."""
    kept = ((name, _kept(name, plan.sink)) for name in sorted(others))
    return tuple(f"the code of {name} has changed, and {what}" for name, what in kept if what)


def compare(old: QueryPlan, new: QueryPlan) -> Iterator[Difference]:
    """Yield the functions that both plans call and whose code is, or may be, another one."""
    before, after = dict(old.code), dict(new.code)
    for name in sorted(_called(old.sink) & _called(new.sink)):
        if before.get(name) == after.get(name):  # none is the service's own function
            continue
        clause = f"function {name}"
        if name not in before:
            text = "the running plan does not say which code it was made with"
            yield Difference("configuration", clause, text, allowed=True)
        elif kept := _kept(name, new.sink):
            text = f"its code has changed; {kept}, and the state holds what was computed before"
            yield Difference("topology", clause, text, allowed=False)
        else:
            text = "its code has changed since the running plan was made"
            yield Difference("configuration", clause, text, allowed=True)


def _called(plan: Plan) -> set[str]:
    names: set[str] = set()
    for node in nodes(plan):
        names |= {call.function for call in calls(node)}
        match node:
            case Aggregate():
                names |= {fold.function for fold in node.folds}
            case Explode():
                names |= {call.function for call in node.calls}
            case _:
                pass
    return names


def _kept(name: str, plan: Plan) -> str:
    """Describe what of the state depends on a function; empty if nothing does."""
    for node in nodes(plan):
        if any(name in _called_in(expr) for expr in remembered(node)):
            return "it bears on what the query groups, joins or aggregates by"
        if (
            isinstance(node, Aggregate)
            and result_kind(node.source) == "TABLE"
            and any(fold.function == name for fold in node.folds)
        ):
            return "it takes back rows of a table that its former code has aggregated"
    return ""


def _called_in(expr: object) -> set[str]:
    return {call.function for call in calls(expr)}
