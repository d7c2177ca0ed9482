"""Which topics a stored query reads, and where a new one begins in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.plan import codec
from ksql.plan.walk import sources

if TYPE_CHECKING:
    from ksql.catalog.model import PersistentQuery
    from ksql.plan.nodes import QueryPlan


def plan_of(query: PersistentQuery) -> QueryPlan:
    """Return the stored plan of a query."""
    return codec.loads(query.plan)


def stated_settings(query: PersistentQuery, plan: QueryPlan) -> dict[str, str]:
    """Return the settings that a query was made with; those that its plan keeps win."""
    return {**dict(query.properties), **dict(plan.settings)}


def read_topics(plan: QueryPlan) -> dict[str, str]:
    """Return the topics of a plan and where a new query starts to read each.

    Tables always at the earliest offset.
    """
    reset = dict(plan.settings).get("auto.offset.reset", "latest").lower()
    starts: dict[str, str] = {}
    for source in sources(plan.sink):
        start = "earliest" if source.kind == "TABLE" else reset
        if starts.get(source.topic) != "earliest":
            starts[source.topic] = start
    return starts
