"""The stored plan of a query, and where it says that the query begins to read its topics.

The setting ``auto.offset.reset`` of the plan is ``earliest``, ``latest``, or a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.sql.plan import QueryPlan, codec, sources

if TYPE_CHECKING:
    from ksql.sql.catalog import PersistentQuery

_TIME: Final = "timestamp:"


def plan_of(query: PersistentQuery) -> QueryPlan:
    """Return the stored plan of a query."""
    return codec.loads(query.plan)


def stated_settings(query: PersistentQuery, plan: QueryPlan) -> dict[str, str]:
    """Return the settings that a query was made with; those that its plan keeps win."""
    return {**dict(query.properties), **dict(plan.settings)}


def read_topics(plan: QueryPlan) -> dict[str, str]:
    """Return the topics of a plan and where a new query starts to read each.

    Streams at ``earliest``, at ``latest``, or ``at_time``; tables always at ``earliest``.
    """
    reset = dict(plan.settings).get("auto.offset.reset", "latest").lower()
    starts: dict[str, str] = {}
    for source in sources(plan.sink):
        start = "earliest" if source.kind == "TABLE" else reset
        if starts.get(source.topic) != "earliest":
            starts[source.topic] = start
    return starts


def at_time(time_ms: int) -> str:
    """Return the start of a query that begins at a time, in ms since the epoch."""
    return f"{_TIME}{time_ms}"


def start_ms(start: str) -> int | None:
    """Return the time at which a query begins to read; None if it begins elsewhere."""
    return int(start.removeprefix(_TIME)) if start.startswith(_TIME) else None
