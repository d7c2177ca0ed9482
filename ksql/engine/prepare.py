"""One distributed statement, checked against the catalog of this moment: what it would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.errors import ServerError
from ksql.engine import ddl, queries, source_tables
from ksql.engine.changes import PutQuery
from ksql.engine.errors import ACTIVE_LIMIT, TooManyQueries
from ksql.engine.switches import check_switches
from ksql.syntax import ast

if TYPE_CHECKING:
    from ksql.engine.context import Context, Prepared

Distributed = (
    ast.CreateSource
    | ast.CreateAsSelect
    | ast.InsertInto
    | ast.AlterSource
    | ast.DropSource
    | ast.QueryControl
    | ast.CreateType
    | ast.DropType
)
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
    """What the statement does, or why it cannot be done. Changes nothing.

    Raises: StatementError.
    """
    check_switches(statement, context)
    prepared = _prepared(statement, text, context)
    _check_limit(prepared, text, context)
    return prepared


def _check_limit(prepared: Prepared, text: str, context: Context) -> None:
    """Only so many queries may run; one that takes another's place is none more.

    Raises: TooManyQueries.
    """
    running = context.catalog.queries
    wanted = {each.query.id for each in prepared.changes if isinstance(each, PutQuery)}
    limit = context.settings.number(ACTIVE_LIMIT)
    if wanted - running.keys() and len(running.keys() | wanted) > limit:
        raise TooManyQueries(text, len(running), limit)


def _prepared(statement: ast.Statement, text: str, context: Context) -> Prepared:
    match statement:
        case ast.CreateSource(read_only=True):
            return source_tables.create_read_only(statement, text, context)
        case ast.CreateSource():
            return ddl.create_source(statement, text, context)
        case ast.CreateAsSelect():
            return queries.create_as_select(statement, text, context)
        case ast.InsertInto():
            return queries.insert_into(statement, text, context)
        case ast.AlterSource():
            return ddl.alter_source(statement, text, context)
        case ast.DropSource():
            return ddl.drop_source(statement, context)
        case ast.QueryControl():
            return queries.control(statement, context)
        case ast.CreateType():
            return ddl.create_type(statement, context)
        case ast.DropType():
            return ddl.drop_type(statement, context)
        case _:
            raise ServerError(f"{type(statement).__name__} is not a distributed statement")
