"""How a table's rows are kept for pull queries: where, how long, and how often they are committed.

What a query was made with comes before the server's configuration, so that a changed default
reaches the tables that state nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ksql.base.config import canonical
from ksql.base.ids import QueryId
from ksql.query.retention import retention_ms
from ksql.stores.kinds import SETTING, StoreType, store_type

if TYPE_CHECKING:
    from ksql.base.config import Settings
    from ksql.catalog.catalog import Catalog
    from ksql.catalog.model import DataSource

INTERVAL: Final = "commit.interval.ms"


@dataclass(frozen=True, slots=True)
class Keeping:
    """The type of a table's stores, its RETENTION if it is windowed, its commit interval."""

    kind: StoreType
    retention_ms: int | None
    commit_ms: int


def keeping(catalog: Catalog, source: DataSource, settings: Settings) -> Keeping:
    """Return how the rows of a table (as ``queryable``) are kept."""
    query = catalog.queries.get(QueryId(str(source.created_by)))
    stated = {} if query is None else {canonical(name): text for name, text in query.properties}
    return Keeping(
        kind=store_type(stated.get(SETTING) or settings.text(SETTING)),
        retention_ms=retention_ms(catalog, source),
        commit_ms=int(stated.get(INTERVAL) or settings.number(INTERVAL)),
    )
