"""The configuration of a table's stores: where, how long, and how often they are committed.

What a query was made with comes before the server's configuration, so that a changed default
reaches the tables that state nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ksql.core.config import canonical
from ksql.core.ids import QueryId
from ksql.exec.dataflow.layout import layout
from ksql.sql.plan import codec
from ksql.views.retention import retention_ms
from ksql.views.stores.store_types import SETTING, StoreType, store_type

if TYPE_CHECKING:
    from ksql.core.config import Settings
    from ksql.sql.catalog.catalog import Catalog
    from ksql.sql.catalog.model import DataSource

INTERVAL: Final = "commit.interval.ms"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The type of a table's stores, its RETENTION if it is windowed, its commit interval.

    ``sole``: whether one task at a time writes each partition, so no transactions overlap there.
    """

    kind: StoreType
    retention_ms: int | None
    commit_ms: int
    sole: bool = field(default=False, compare=False)


def store_config_of(catalog: Catalog, source: DataSource, settings: Settings) -> StoreConfig:
    """Return how the rows of a table (as ``queryable``) are kept."""
    query = catalog.queries.get(QueryId(str(source.created_by)))
    stated = {} if query is None else {canonical(name): text for name, text in query.properties}
    return StoreConfig(
        kind=store_type(stated.get(SETTING) or settings.text(SETTING)),
        retention_ms=retention_ms(catalog, source),
        commit_ms=int(stated.get(INTERVAL) or settings.number(INTERVAL)),
        sole=query is not None and _is_sole(query.plan),
    )


@lru_cache(maxsize=4096)  # of every table, at each change of the catalog
def _is_sole(text: str) -> bool:
    """Return whether each partition of a query's topic is written by one of its tasks.

    Tasks of a query without state may share partitions, as do all of an earlier version's plan.
    """
    try:
        plan = codec.loads(text)
    except (
        codec.UnreadablePlan
    ):  # what runs the query reports it; its topic has records all the same
        return False
    return plan.placement == "moved" or (
        plan.placement == "keyed" and bool(layout(plan.sink).stages)
    )
