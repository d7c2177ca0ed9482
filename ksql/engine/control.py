"""TERMINATE, PAUSE and RESUME."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.errors import StatementError
from ksql.dataflow import rights
from ksql.engine.changes import Change, DeleteTopic, EndQuery, PauseQuery
from ksql.engine.context import Context, Prepared, command_id
from ksql.engine.errors import DoesNotExist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.catalog.model import PersistentQuery
    from ksql.syntax import ast


def control(stmt: ast.QueryControl, context: Context) -> Prepared:
    """Prepare TERMINATE, PAUSE or RESUME of one query or of all.

    Raises: StatementError.
    """
    queries = _chosen(stmt, context)
    changes: tuple[Change, ...]
    match stmt.action:
        case "TERMINATE":
            changes = tuple(EndQuery(query.id) for query in queries)
            changes += _changelogs(queries, context)
        case "PAUSE":
            changes = tuple(PauseQuery(query.id, True) for query in queries)
        case "RESUME":
            changes = tuple(PauseQuery(query.id, False) for query in queries)
    verb = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[stmt.action]
    return Prepared(
        command_id=command_id(stmt.action.lower(), stmt.query_id or "ALL", "execute"),
        changes=changes,
        message=f"Query {verb}.",
        query_id=queries[0].id if len(queries) == 1 else None,
    )


def _changelogs(queries: Sequence[PersistentQuery], context: Context) -> tuple[Change, ...]:
    """Delete the topics that these queries keep for themselves."""
    kept = (source.materialization for source in context.catalog.sources.values())
    ended = {query.id for query in queries}
    return tuple(
        DeleteTopic(changelog.topic, context.topics.identity(changelog.topic))
        for changelog in kept
        if changelog is not None
        and changelog.query_id in ended
        and rights.is_changelog(changelog.topic, changelog.query_id, context.settings)
    )


def _chosen(stmt: ast.QueryControl, context: Context) -> list[PersistentQuery]:
    if stmt.query_id is None:
        known = context.catalog.queries.values()
        return [query for query in known if stmt.everything or query.kind != "CST"]
    chosen = context.catalog.query(stmt.query_id)
    if chosen is None:
        raise DoesNotExist(
            f"Unknown queryId: {stmt.query_id}",
            stmt.query_id,
            context.catalog.queries,
            ends=stmt.action != "RESUME",
        )
    if chosen.kind == "CST":
        raise StatementError(
            f"Cannot {stmt.action.lower()} query '{chosen.id}' because it is linked to a "
            "source table.",
            hint=f"DROP TABLE {chosen.sources[0]} ends it.",
        )
    return [chosen]
