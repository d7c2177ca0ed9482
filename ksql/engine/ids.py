"""The ids of new queries: they name directories, groups and transactions, so they are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.base.ids import QueryId, persistent_query_id
from ksql.engine.errors import QueryIdTooLong

if TYPE_CHECKING:
    from ksql.base.errors import Span

LONGEST: Final = 200
"""In bytes; file systems take 255 for a name, and some names are built around an id."""


def new_query_id(kind: str, sink: str, number: int) -> QueryId:
    """Return the id of a query that is to be created.

    Raises: QueryIdTooLong.
    """
    query_id = persistent_query_id(kind, sink, number)
    check_length(query_id)
    return query_id


def check_length(query_id: str, span: Span | None = None) -> None:
    """Refuse an id that is too long for a directory's name.

    Raises: QueryIdTooLong.
    """
    if len(query_id.encode("utf-8", "surrogatepass")) > LONGEST:
        raise QueryIdTooLong(query_id, LONGEST, span=span)
