"""All properties, by subject and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.base.properties import queries, server, statements, topics

if TYPE_CHECKING:
    from ksql.base.properties.model import Property

SUBJECTS: Final[dict[str, tuple[Property, ...]]] = {
    "Doors of the server": server.DOORS,
    "Service and state": server.STATE,
    "Spark and failures": server.SPARK,
    "Kafka and its topics": topics.KAFKA,
    "Schema registry": topics.REGISTRY,
    "Results of queries": queries.RESULTS,
    "Running queries": queries.RUNNING,
    "Defaults of statements": statements.DEFAULTS,
    "Allowed statements": statements.ALLOWED,
    "User functions": server.USER_FUNCTIONS,
    "Processing log": topics.PROCESSING_LOG,
}
PROPERTIES: Final[dict[str, Property]] = {
    row.name: row for rows in SUBJECTS.values() for row in rows
}
PLAN_PROPERTIES: Final = tuple(row.name for row in queries.RESULTS)
