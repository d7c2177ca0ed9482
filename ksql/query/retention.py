"""How long a windowed table's rows can be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.ids import QueryId
from ksql.dataflow.starts import plan_of
from ksql.plan.nodes import Aggregate
from ksql.plan.walk import nodes

if TYPE_CHECKING:
    from ksql.catalog.catalog import Catalog
    from ksql.catalog.model import DataSource


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
