"""Which push queries ksqlDB calls scalable.

They read on from the newest record of what one running query writes. Ours read its topic, as all
push queries do: no query has to be started for them. Clients still see a difference in the ids, and
records without key are left out.

Source: docs/sql/reading.md#push-queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.serving.pull_restrictions import places
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from ksql.core.config import Settings
    from ksql.sql.catalog.catalog import Catalog

_ENABLED = "ksql.query.push.v2.enabled"


def is_scalable(query: ast.Query, catalog: Catalog, settings: Settings) -> bool:
    """Return whether a push query is one of them."""
    source = query.source
    return (
        settings.flag(_ENABLED)
        and settings.text("auto.offset.reset") == "latest"
        and isinstance(source, ast.SourceRef)
        and query.emit == "CHANGES"
        and query.window is None
        and query.group_by is None
        and query.partition_by is None
        and query.having is None
        and len(catalog.writers(source.name)) == 1
        and not _names_places(query)
    )


def _names_places(query: ast.Query) -> bool:
    exprs = [item.expr for item in query.select if isinstance(item, ast.SelectItem)]
    return bool(places(exprs if query.where is None else [*exprs, query.where]))
