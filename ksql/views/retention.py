"""The retention of a windowed table's rows, and the note of a pull query on hidden ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.ids import QueryId
from ksql.core.types.times import UNIT_MS, format_timestamp
from ksql.exec.dataflow.source_topics import plan_of
from ksql.sql.plan.nodes import Aggregate
from ksql.sql.plan.walk import nodes

if TYPE_CHECKING:
    from ksql.sql.catalog.catalog import Catalog
    from ksql.sql.catalog.model import DataSource
    from ksql.views.stores.base import Hidden


def retention_ms(catalog: Catalog, source: DataSource) -> int | None:
    """Return RETENTION of the windows that the table's query makes; None if it makes none."""
    if source.window is None or source.created_by is None:
        return None
    query = catalog.queries.get(QueryId(source.created_by))
    if query is None:
        return None
    kept = [
        node.window.retention_ms
        for node in nodes(plan_of(query).sink)
        if isinstance(node, Aggregate) and node.window is not None
    ]
    return max(kept, default=None)


def hidden_note(source: DataSource, hidden: Hidden) -> str:
    """Return the note of an answer that lacks windows, as they are older than the RETENTION."""
    sessions = source.window is not None and source.window.size_ms is None
    kind = "sessions that end" if sessions else "windows that begin"
    first, last = format_timestamp(hidden.first), format_timestamp(hidden.last)
    return (
        f"RETENTION {_duration(hidden.retention_ms)} hides {kind} from {first} to {last}; "
        f"the topic {source.topic} may still have them"
    )


def _duration(length_ms: int) -> str:
    """Return a duration as a statement has it, in the largest unit that divides it."""
    whole = ((name, ms) for name, ms in UNIT_MS.items() if length_ms and length_ms % ms == 0)
    name, unit_ms = next(whole, ("MILLISECONDS", 1))
    count = length_ms // unit_ms
    return f"{count} {name.removesuffix('S') if count == 1 else name}"
