"""The stored forms of sources and queries; see ``ksql.core.types.forms``."""

from __future__ import annotations

from typing import Final

from ksql.core.structs import Form, form
from ksql.sql.catalog import model

FORMS: Final[tuple[Form, ...]] = (
    form("model.Materialization", model.Materialization, "query_id topic key_format value_format"),
    form(
        "model.DataSource",
        model.DataSource,
        "name kind topic schema key_format value_format partitions replicas timestamp window"
        " read_only created_by derived_from statement materialization",
    ),
    form(
        "model.PersistentQuery",
        model.PersistentQuery,
        "id kind sink sources statement plan offset properties paused started_at_offset"
        " version=version_number? cut_over?",
    ),
    form("model.CutOver", model.CutOver, "number former"),
    form("model.Rebuild", model.Rebuild, "candidate source rollback"),
    form("model.FormerVersion", model.FormerVersion, "query source keep_until_ms"),
)
