"""Names for the quantities that are plain numbers and texts at run time."""

from __future__ import annotations

from typing import NewType

QueryId = NewType("QueryId", str)
Offset = NewType("Offset", int)
Millis = NewType("Millis", int)


def persistent_query_id(kind: str, sink: str, number: int) -> QueryId:
    """Return the id of a new persistent query: ``CSAS_BAR_7``; an INSERT's is ``INSERTQUERY_7``.

    ``number`` is the offset of its command in the command topic, or one that a restore has raised.
    """
    if kind == "INSERTQUERY":
        return QueryId(f"INSERTQUERY_{number}")
    return QueryId(f"{kind}_{sink}_{number}")


def application_id(service_id: str, query_id: str) -> str:
    """Name a query in Kafka, uniquely in the cluster: its groups, transactions and own topics."""
    return f"_confluent-ksql-{service_id}query_{query_id}"
