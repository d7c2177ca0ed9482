"""A distributed statement, prepared against the catalog of this moment; nothing is changed.

Four steps, each a function from values to a value: resolve, plan, compare, effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.errors import ServerError
from ksql.engine import (
    compare,
    control,
    custom_types,
    drops,
    effects,
    plan_queries,
    plan_sources,
    resolve,
)
from ksql.engine.changes import PutQuery
from ksql.engine.context import Prepared
from ksql.engine.errors import ACTIVE_LIMIT, TooManyQueries
from ksql.engine.switches import check_switches
from ksql.syntax import ast

if TYPE_CHECKING:
    from ksql.engine.context import Context

DISTRIBUTED = (
    ast.CreateSource,
    ast.CreateAsSelect,
    ast.InsertInto,
    ast.AlterSource,
    ast.DropSource,
    ast.QueryControl,
    ast.CreateType,
    ast.DropType,
)


def prepare(statement: ast.Statement, text: str, context: Context) -> Prepared:
    """Return the effects of the statement.

    Raises: StatementError if it cannot be carried out.
    """
    check_switches(statement, context)
    prepared = _prepared(statement, text, context)
    _check_limit(prepared, text, context)
    return prepared


def _check_limit(prepared: Prepared, text: str, context: Context) -> None:
    """Refuse one query too many; a replacement does not count towards the limit.

    Raises: TooManyQueries.
    """
    running = context.catalog.queries
    new_ids = {change.query.id for change in prepared.changes if isinstance(change, PutQuery)}
    limit = context.settings.number(ACTIVE_LIMIT)
    if new_ids - running.keys() and len(running.keys() | new_ids) > limit:
        raise TooManyQueries(text, len(running), limit)


def _prepared(statement: ast.Statement, text: str, context: Context) -> Prepared:
    match statement:
        case ast.CreateSource():
            return _declared(statement, text, context)
        case ast.CreateAsSelect():
            return _created_as(statement, text, context)
        case ast.InsertInto():
            insert = resolve.inserted(statement, text, context)
            return effects.inserted(insert, plan_queries.inserted(insert, context), context)
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
            return control.control(statement, context)
        case ast.CreateType():
            return custom_types.created(statement, context)
        case ast.DropType():
            return custom_types.dropped(statement, context)
        case _:
            raise ServerError(f"{type(statement).__name__} is not a distributed statement")


def _created_as(stmt: ast.CreateAsSelect, text: str, context: Context) -> Prepared:
    if there := resolve.already_there(stmt, context.catalog):
        return Prepared(warning=there)
    resolved = resolve.created_as(stmt, text, context)
    planned = plan_queries.created_as(resolved, context)
    compared = compare.queries(resolved, planned, context)
    return effects.created_as(resolved, planned, compared, context)


def _declared(stmt: ast.CreateSource, text: str, context: Context) -> Prepared:
    if there := resolve.already_there(stmt, context.catalog):
        return Prepared(warning=there)
    resolved = resolve.declared(stmt, text, context)
    planned = plan_sources.declared(resolved, context)
    source = compare.sources(resolved.existing, planned.source, context.catalog)
    return effects.declared(resolved, planned, source, context)
