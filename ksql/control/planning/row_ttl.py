"""RETENTION_MS of a table without windows: how long its rows stay without an update.

Only an aggregate over a stream can hold it. It alone has the time of each row's latest record, and
a row that leaves changes no other row. The topic of such a table is compacted as any table's
is. Source: docs/sql/sources.md#rows-that-expire.
"""

from __future__ import annotations

from typing import Final

from ksql.core import StatementError
from ksql.sql.plan import Aggregate, Built, Plan, result_kind
from ksql.sql.plan.walk import nodes

_UPSTREAM: Final = (
    "State RETENTION_MS at the table that it reads, if that one aggregates a stream: rows that "
    "leave it leave this one, too."
)
DECLARED: Final = (
    "Declare a stream over the topic, and aggregate it: CREATE TABLE .. WITH (RETENTION_MS=..) AS "
    "SELECT k, LATEST_BY_OFFSET(v) AS v FROM .. GROUP BY k;"
)


class NoRowRetention(StatementError):
    """A table without windows whose rows cannot leave by time."""

    def __init__(self, detail: str, hint: str) -> None:
        super().__init__(
            "Invalid config variable in the WITH clause: RETENTION_MS. "
            "Non-windowed tables do not support retention.",
            detail=detail,
            hint=hint,
        )


def of_declared() -> NoRowRetention:
    """Return the refusal for a table over a topic."""
    detail = "No query writes the topic of this table, so nothing could delete its rows there."
    return NoRowRetention(detail, DECLARED)


def row_ttl(retention_ms: int | None, built: Built) -> int:
    """Return how long rows of a result stay without an update; 0 for a topic's retention.

    Raises: StatementError where rows cannot leave by time.
    """
    if retention_ms is None or built.kind == "STREAM" or built.window is not None:
        return 0
    if retention_ms < 1:
        raise StatementError(
            f"Invalid value {retention_ms} for configuration RETENTION_MS: rows of a table stay "
            "for at least 1 ms.",
            hint="Leave RETENTION_MS out to keep rows until they are deleted.",
        )
    _check_aggregate(built.plan)
    return retention_ms


def _check_aggregate(plan: Plan) -> None:
    aggregate = next((node for node in nodes(plan) if isinstance(node, Aggregate)), None)
    if aggregate is None:
        raise NoRowRetention("Its rows follow those of the tables that it reads.", _UPSTREAM)
    if result_kind(aggregate.source) == "TABLE":
        raise NoRowRetention("Its rows count rows of a table, which may still be there.", _UPSTREAM)
