"""The stored forms of a command's changes; see ``ksql.core.types.forms``."""

from __future__ import annotations

from typing import Final

from ksql.control.engine import changes
from ksql.core.structs import Form, form

FORMS: Final[tuple[Form, ...]] = (
    form("changes.PutSource", changes.PutSource, "source"),
    form("changes.DropSource", changes.RemoveSource, "name"),
    form("changes.PutQuery", changes.PutQuery, "query"),
    form("changes.EndQuery", changes.EndQuery, "query_id"),
    form("changes.PauseQuery", changes.PauseQuery, "query_id paused"),
    form("changes.PutType", changes.PutType, "name type"),
    form("changes.DropType", changes.RemoveType, "name"),
    form("changes.StepOver", changes.StepOver, "offset"),
    form("changes.IdsFrom", changes.IdsFrom, "offset number"),
    form("changes.BeginRebuild", changes.BeginRebuild, "rebuild"),
    form("changes.EndRebuild", changes.EndRebuild, "query_id"),
    form("changes.CutOverQuery", changes.CutOverQuery, "query source keep_until_ms"),
    form("changes.ForgetFormer", changes.ForgetFormer, "query_id"),
    form("changes.DeleteTopic", changes.DeleteTopic, "name id"),
    form("changes.DeleteSubject", changes.DeleteSubject, "subject schema_id version"),
)
