"""Decides whether a rebuild may compute only the added aggregates and keep the others' state.

Both must fold the same rows into the same groups: else the aggregates of one row would speak of
different records. Source: docs/upgrades.md#backfills. KLIP-28 knows no backfill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ksql.sql.plan.nodes import (
    Aggregate,
    EmitFinal,
    Filter,
    ForeignKeyJoin,
    QueryPlan,
    StreamStreamJoin,
    TableTableJoin,
)
from ksql.sql.plan.walk import nodes, result_kind
from ksql.sql.upgrade.settings import computed_with
from ksql.sql.upgrade.verdict import Difference, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator


_BELOW: Final = ("WHERE", "GRACE PERIOD", "RETENTION_MS")
"""The clauses that decide which records an aggregate folds."""
_OTHER_RECORDS: Final = "added aggregates would fold other records than those that keep their state"


def first_added(old: QueryPlan) -> int:
    """Return the number from which on the slots of a plan's successor are those of added ones."""
    return max(
        (node.next_slot for node in nodes(old.sink) if isinstance(node, Aggregate)), default=0
    )


def backfilled(verdict: Verdict, old: QueryPlan, aligned: QueryPlan) -> Verdict:
    """Return the verdict on a backfill, from that on the replacement in place.

    ``aligned`` is the new plan on the old one's slots. The verdict in place must allow that old
    columns are computed by added aggregates.
    """
    changes = tuple(_refused_below(change) for change in verdict.changes)
    return replace(verdict, changes=changes).also(tuple(_against(old, aligned)))


def _refused_below(change: Difference) -> Difference:
    if change.clause not in _BELOW or not change.allowed:
        return change
    return replace(change, text=f"{change.text}; {_OTHER_RECORDS}", allowed=False)


def _against(old: QueryPlan, aligned: QueryPlan) -> Iterator[Difference]:
    """Yield what no change of the plan brings about."""
    aggregate = next((node for node in nodes(aligned.sink) if isinstance(node, Aggregate)), None)
    if aggregate is None:
        yield _refused("GROUP BY", "there are no aggregates whose state could be kept")
        return
    if _passing(old) != _passing(aligned):
        text = f"a setting, or the code of a function that it calls, has changed; {_OTHER_RECORDS}"
        yield _refused("WHERE", text)
    first = first_added(old)
    if all(fold.slot < first for fold in aggregate.folds):
        yield _refused("SELECT", "no aggregate is added: nothing is to be computed")
    if any(isinstance(node, EmitFinal) for node in nodes(aligned.sink)):
        text = "the final results of closed windows are not in the state any more"
        yield _refused("EMIT", text)
    if result_kind(aggregate.source) == "TABLE":
        text = "aggregates over a table take rows back, which added ones may never have folded"
        yield _refused("FROM", text)
    kept = (StreamStreamJoin, TableTableJoin, ForeignKeyJoin)
    if any(isinstance(node, kept) for node in nodes(aggregate.source)):
        text = "the join remembers rows that a query which begins now may not find any more"
        yield _refused("JOIN", text)


def _passing(plan: QueryPlan) -> tuple[object, ...]:
    """Return what decides, besides the statement, which records an aggregate folds."""
    below = [
        step
        for aggregate in nodes(plan.sink)
        if isinstance(aggregate, Aggregate)
        for step in nodes(aggregate.source)
    ]
    return computed_with(plan, [step.predicate for step in below if isinstance(step, Filter)])


def _refused(clause: str, text: str) -> Difference:
    return Difference("topology", clause, text, allowed=False)
