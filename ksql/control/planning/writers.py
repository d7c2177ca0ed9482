"""CREATE OR REPLACE QUERY id AS INSERT INTO ..: another plan for one of a stream's writers.

The stream and its other writers stay what they are, so its columns, formats and topic do, too.
Source: docs/upgrades.md#one-of-several-writers. ksqlDB and KLIP-28 have no such statement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ksql.control.access import seen_queries
from ksql.control.engine.changes import PutQuery
from ksql.control.engine.context import (
    PlanningContext,
    PlanningInputs,
    Prepared,
    command_id,
    with_settings,
)
from ksql.control.engine.errors import BadProperty, DoesNotExist
from ksql.control.planning import compare, effects, plan_queries, rebuild, resolve, start_mode
from ksql.control.planning.expected import stated_properties
from ksql.control.planning.properties import With
from ksql.core import (
    OTHER_ID,
    OTHER_SINK,
    REPLACE_DISABLED,
    TABLE_WRITER,
    UNKNOWN_WRITER,
    StatementError,
    near,
    quote,
)
from ksql.sql.catalog import Catalog, DataSource, PersistentQuery
from ksql.sql.plan import codec
from ksql.sql.syntax import StringLit, ast
from ksql.sql.upgrade import inherited_properties

if TYPE_CHECKING:
    from ksql.control.planning.plan_queries import PlannedInsert

_ID: Final = "QUERY_ID"
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class _Resolved:
    """The statement, the query that it replaces, and the stream that this one writes."""

    statement: ast.ReplaceQuery
    text: str
    writer: PersistentQuery
    target: DataSource


def replaced(stmt: ast.ReplaceQuery, text: str, context: PlanningContext) -> Prepared:
    """Prepare CREATE OR REPLACE QUERY.

    Raises: StatementError.
    """
    if not context.settings.flag(resolve.OR_REPLACE):
        raise REPLACE_DISABLED(setting=resolve.OR_REPLACE)
    writer = _writer(stmt, context.catalog)
    insert = resolve.inserted(_unnamed(stmt, writer), text, context)
    planned = plan_queries.inserted(replace(insert, query_id=writer.id), context)
    resolved = _Resolved(stmt, text, writer, insert.target)
    compared = compare.replacement(_replacement(resolved, planned, context), context)
    query = _query(resolved, planned, compared, context)
    if compared.rebuilds:
        return _rebuilt(query, resolved, planned, compared, context)
    verdict = compared.verdict
    return Prepared(
        command_id=command_id("stream", writer.sink, "create"),
        changes=(PutQuery(query),),
        message=f"Created query with ID {writer.id}",
        query_id=writer.id,
        verdict=None if verdict is None else with_settings(verdict, writer, query),
        plans={"old": writer.plan, "new": query.plan},
    )


def _writer(stmt: ast.ReplaceQuery, catalog: Catalog) -> PersistentQuery:
    """Return the query of that id.

    Raises: UNKNOWN_WRITER, TABLE_WRITER, OTHER_SINK.
    """
    writer = catalog.query(stmt.query_id)
    if writer is None:
        raise _unknown(stmt, catalog)
    if writer.kind in ("CTAS", "CST"):
        table = writer.sink or writer.sources[0]
        raise TABLE_WRITER(query_id=writer.id, name=quote(table))
    if writer.sink != stmt.name:
        name, given = quote(writer.sink), quote(stmt.name)
        raise OTHER_SINK(query_id=writer.id, name=name, given=given)
    return writer


def _unknown(stmt: ast.ReplaceQuery, catalog: Catalog) -> StatementError:
    """Name the writers of the stream, else those of all streams."""
    seen = frozenset(seen_queries(catalog))
    streams = [query.id for query in catalog.queries.values() if query.kind in ("CSAS", "INSERT")]
    writers = [query.id for query in catalog.writers(stmt.name)]
    known = [query_id for query_id in writers or streams if query_id in seen]
    first = [*near(stmt.query_id, known), *known][:_MOST_SHOWN]
    shown = ", ".join(dict.fromkeys(first)) or "none"
    whose = f"{quote(stmt.name)} is written by" if catalog.writers(stmt.name) else "Queries are"
    return UNKNOWN_WRITER(query_id=stmt.query_id, known=f"{whose}: {shown}")


def _unnamed(stmt: ast.ReplaceQuery, writer: PersistentQuery) -> ast.InsertInto:
    """Return the INSERT without QUERY_ID, which may only repeat the id.

    Raises: OTHER_ID, DoesNotExist.
    """
    kept = []
    for prop in stmt.insert.properties:
        if prop.name.upper() != _ID:
            kept.append(prop)  # which INSERT INTO refuses, in its words
        elif not isinstance(prop.value, StringLit) or prop.value.value.upper() != writer.id.upper():
            raise OTHER_ID(query_id=writer.id, span=prop.span)
    return replace(stmt.insert, properties=tuple(kept))


def _replacement(
    resolved: _Resolved, planned: PlannedInsert, context: PlanningContext
) -> compare.Replacement:
    stmt, target = resolved.statement, resolved.target
    options = With(stmt.properties, ddl=False)
    for prop in stmt.properties:
        if prop.name.upper() not in (rebuild.MODE, start_mode.START):
            raise BadProperty(
                f"{prop.name} belongs to {target.name}, which stays as it is.",
                hint=f"State {rebuild.MODE} or {start_mode.START}.",
                span=prop.span,
            )
    return compare.Replacement(
        statement=stmt,
        writer=resolved.writer,
        plan=planned.plan,
        existing=target,
        source=target,
        mode=rebuild.replace_mode(options, or_replace=True),
        start=start_mode.start(options, context),
        lost=partial(resolve.lost, stmt.query, context),
    )


def _query(
    resolved: _Resolved, planned: PlannedInsert, compared: compare.Compared, inputs: PlanningInputs
) -> PersistentQuery:
    """Return the query under its id, with the new plan and what the statement states for it."""
    old = resolved.writer
    stated = inherited_properties(dict(old.properties), stated_properties(inputs.settings))
    return replace(
        old,
        sources=planned.reads,
        statement=resolved.text,
        plan=codec.dumps(compared.plan),
        offset=inputs.offset,
        properties=tuple(sorted(stated.items())),
    )


def _rebuilt(
    query: PersistentQuery,
    resolved: _Resolved,
    planned: PlannedInsert,
    compared: compare.Compared,
    context: PlanningContext,
) -> Prepared:
    """Begin a candidate next to the query, which runs on as it is."""
    target = resolved.target
    like = context.topics.describe(target.topic)
    if like is None:
        raise DoesNotExist(f"Topic {target.topic} of {quote(target.name)} does not exist.")
    is_creator = target.created_by == query.id
    source = replace(target, derived_from=planned.reads) if is_creator else target
    return effects.rebuilt(query, source, like, compared, context)
