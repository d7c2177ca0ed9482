"""The sources, types and queries that exist, as one immutable snapshot."""

from __future__ import annotations

from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import (
    FORMS,
    HEADERS_FORMAT,
    DataSource,
    Materialization,
    PersistentQuery,
    Topic,
    kept_schema,
)

__all__ = [
    "FORMS",
    "HEADERS_FORMAT",
    "Catalog",
    "DataSource",
    "Materialization",
    "PersistentQuery",
    "Topic",
    "kept_schema",
]
