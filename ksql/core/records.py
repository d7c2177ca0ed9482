"""The shapes of rows and records for all layers, and names of quantities (Millis, Offset, ..).

Quantities are plain numbers and texts at run time; their names are for type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NewType

if TYPE_CHECKING:
    from ksql.core.types.format import Side


LATEST_MS: Final = (2**63 - 1) // 1000
"""The latest time of a record that a query can read: Spark counts microseconds in 64 bits."""

Row = tuple[Any, ...]
"""A row's values in the order of its columns; see ``ksql.core.types.model`` for their types."""

Headers = list[tuple[str, bytes | None]]
"""A record's headers; a name may occur more than once."""


class RawRecord(NamedTuple):
    """A record as it lies in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None = None


class Written(NamedTuple):
    """The place of a record that was written; ``end`` is the offset after it."""

    topic: str
    partition: int
    end: int


OutRecord = tuple[bytes | None, bytes | None, int, Headers | None]
"""A record to be written: key, value, timestamp in milliseconds, headers.

A plain tuple: each record that a query writes is one, and ``zip`` makes these for nothing.
"""


class BadRecord(NamedTuple):
    """A record that its format, ``format`` by name, does not decode: logged in place of its row."""

    target: Side
    topic: str
    data: bytes | None
    format: str = ""


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
