"""Plans any distributed statement against the catalog of this moment; nothing is changed.

There are four steps, each a function from values to a value: resolve, plan, compare, effects.

TERMINATE, PAUSE, RESUME, CREATE TYPE and DROP TYPE take no steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.access import seen_queries
from ksql.control.engine.changes import (
    Change,
    DeleteTopic,
    EndQuery,
    PauseQuery,
    PutQuery,
    PutType,
    RemoveType,
)
from ksql.control.engine.context import PlanningContext, PlanningInputs, Prepared, command_id
from ksql.control.engine.errors import ACTIVE_LIMIT, DoesNotExist, TooManyQueries
from ksql.control.engine.feature_flags import check_switches
from ksql.control.planning import (
    abort_rollback,
    compare,
    drops,
    effects,
    plan_queries,
    plan_sources,
    resolve,
    writers,
)
from ksql.core import ServerError, StatementError, visible
from ksql.exec.dataflow import topic_acl
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.sql.catalog import PersistentQuery


DISTRIBUTED = (
    ast.CreateSource,
    ast.CreateAsSelect,
    ast.InsertInto,
    ast.ReplaceQuery,
    ast.AlterSource,
    ast.DropSource,
    ast.QueryControl,
    ast.UpgradeControl,
    ast.CreateType,
    ast.DropType,
)


def prepare(statement: ast.Statement, text: str, context: PlanningContext) -> Prepared:
    """Return the effects of the statement.

    Raises: StatementError if it cannot be carried out.
    """
    check_switches(statement, context)
    prepared = _prepared(statement, text, context)
    _check_limit(prepared, text, context)
    return prepared


def _check_limit(prepared: Prepared, text: str, context: PlanningContext) -> None:
    """Refuse one query too many; a replacement does not count towards the limit.

    Raises: TooManyQueries.
    """
    running = context.catalog.queries
    new_ids = {change.query.id for change in prepared.changes if isinstance(change, PutQuery)}
    limit = context.settings.number(ACTIVE_LIMIT)
    if new_ids - running.keys() and len(running.keys() | new_ids) > limit:
        raise TooManyQueries(text, len(running), limit)


def _prepared(statement: ast.Statement, text: str, context: PlanningContext) -> Prepared:
    match statement:
        case ast.CreateSource():
            return _declared(statement, text, context)
        case ast.CreateAsSelect():
            return _created_as(statement, text, context)
        case ast.InsertInto():
            insert = resolve.inserted(statement, text, context)
            return effects.inserted(insert, plan_queries.inserted(insert, context), context)
        case ast.ReplaceQuery():
            return writers.replaced(statement, text, context)
        case ast.AlterSource():
            source = resolve.altered(statement, context)
            wider = plan_sources.grown(source, statement)
            compare.growth(source, wider, context.catalog)
            return effects.altered(wider)
        case ast.DropSource():
            gone = drops.already_gone(statement, context)
            return (
                Prepared(warning=gone)
                if gone
                else drops.effects(drops.resolved(statement, context))
            )
        case ast.QueryControl():
            return control(statement, context)
        case ast.UpgradeControl():
            return abort_rollback.control(statement, context)
        case ast.CreateType():
            return created(statement, context)
        case ast.DropType():
            return dropped(statement, context)
        case _:
            raise ServerError(f"{type(statement).__name__} is not a distributed statement")


def _created_as(stmt: ast.CreateAsSelect, text: str, context: PlanningContext) -> Prepared:
    if there := resolve.already_there(stmt, context.catalog):
        return Prepared(warning=there)
    resolved = resolve.created_as(stmt, text, context)
    planned = plan_queries.created_as(resolved, context)
    compared = compare.queries(resolved, planned, context)
    return effects.created_as(resolved, planned, compared, context)


def _declared(stmt: ast.CreateSource, text: str, context: PlanningContext) -> Prepared:
    if there := resolve.already_there(stmt, context.catalog):
        return Prepared(warning=there)
    resolved = resolve.declared(stmt, text, context)
    planned = plan_sources.declared(resolved, context)
    source = compare.sources(resolved.existing, planned.source, context.catalog)
    return effects.declared(resolved, planned, source, context)


def control(stmt: ast.QueryControl, context: PlanningContext) -> Prepared:
    """Prepare TERMINATE, PAUSE or RESUME of one query or of all.

    Raises: StatementError.
    """
    queries = _chosen(stmt, context)
    changes: tuple[Change, ...]
    match stmt.action:
        case "TERMINATE":
            changes = tuple(EndQuery(query.id) for query in queries)
            changes += _changelogs(queries, context)
            changes += abort_rollback.results_of(queries, context)
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


def _changelogs(queries: Sequence[PersistentQuery], context: PlanningContext) -> tuple[Change, ...]:
    """Delete the topics that these queries keep for themselves."""
    kept = (source.materialization for source in context.catalog.sources.values())
    ended = {query.id for query in queries}
    return tuple(
        DeleteTopic(changelog.topic, context.topics.identity(changelog.topic))
        for changelog in kept
        if changelog is not None
        and changelog.query_id in ended
        and topic_acl.is_changelog(changelog.topic, changelog.query_id, context.settings)
    )


def _chosen(stmt: ast.QueryControl, context: PlanningContext) -> list[PersistentQuery]:
    if stmt.query_id is None:
        known = context.catalog.queries.values()
        return [query for query in known if stmt.everything or query.kind != "CST"]
    chosen = context.catalog.query(stmt.query_id)
    if chosen is None:
        raise DoesNotExist(
            f"Unknown queryId: {stmt.query_id}",
            stmt.query_id,
            seen_queries(context.catalog),
            ends=stmt.action != "RESUME",
        )
    if chosen.kind == "CST":
        raise StatementError(
            f"Cannot {stmt.action.lower()} query '{chosen.id}' because it is linked to a "
            "source table.",
            hint=f"DROP TABLE {chosen.sources[0]} ends it.",
        )
    return [chosen]


def created(stmt: ast.CreateType, inputs: PlanningInputs) -> Prepared:
    """Prepare CREATE TYPE [IF NOT EXISTS] name AS type.

    Raises: StatementError.
    """
    existing = inputs.catalog.types.get(stmt.name)
    if existing is not None and stmt.if_not_exists:
        return Prepared(warning=f"{stmt.name} is already registered with type {existing}")
    if existing is not None:
        raise StatementError(
            f"Cannot register custom type '{stmt.name}' since it is already registered "
            f"with type: {existing}"
        )
    return Prepared(
        command_id=command_id("type", stmt.name, "create"),
        changes=(PutType(stmt.name, stmt.type),),
        message=f"Registered custom type with name '{stmt.name}' and SQL type {stmt.type}",
    )


def dropped(stmt: ast.DropType, inputs: PlanningInputs) -> Prepared:
    """Prepare DROP TYPE [IF EXISTS] name.

    Raises: StatementError.
    """
    if stmt.name not in inputs.catalog.types:
        if stmt.if_exists:
            return Prepared(warning=f"Type '{stmt.name}' does not exist")
        known = visible(inputs.catalog.types)
        raise DoesNotExist(f"Type {stmt.name} does not exist.", stmt.name, known, ends=True)
    return Prepared(
        command_id=command_id("type", stmt.name, "drop"),
        changes=(RemoveType(stmt.name),),
        message=f"Dropped type '{stmt.name}'",
    )
