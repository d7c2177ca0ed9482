"""The sources, types and queries that exist, as one immutable snapshot."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import (
    FORMS,
    HEADERS_FORMAT,
    RECORD_CONFIGS,
    CutOver,
    DataSource,
    FormerVersion,
    Materialization,
    PersistentQuery,
    Rebuild,
    Topic,
    kept_schema,
)
