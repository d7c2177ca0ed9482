"""Refuses statements with parts of the language that this server has switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import StatementError
from ksql.sql.syntax import ast, collect, expressions
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningContext

HEADERS = "ksql.headers.columns.enabled"
LAMBDAS = "ksql.lambdas.enabled"
FINAL = "ksql.suppress.enabled"
READ_ONLY = "ksql.source.table.materialization.enabled"


def check_switches(statement: ast.Statement, context: PlanningContext) -> None:
    """Refuse what this server does not want.

    Raises: StatementError.
    """
    match statement:
        case ast.CreateSource():
            _check_source(statement, context)
        case (
            ast.CreateAsSelect(query=query)
            | ast.InsertInto(query=query)
            | ast.ReplaceQuery(query=query)
        ):
            if not context.settings.flag(LAMBDAS):
                _refuse_lambdas(query)
            if query.emit == "FINAL" and not context.settings.flag(FINAL):
                raise StatementError(
                    "Suppression is currently disabled. You can enable it by setting "
                    f"{FINAL} to true"
                )
        case _:
            return


def _check_source(statement: ast.CreateSource, context: PlanningContext) -> None:
    if statement.read_only and not context.settings.flag(READ_ONLY):
        raise StatementError(
            f"Cannot create source {statement.kind.lower()} '{statement.name}': "
            "source table materialization is disabled.",
            hint=f"To enable it, start the server with '{READ_ONLY}'=true.",
        )
    with_headers = any(column.mark in ("HEADERS", "HEADER") for column in statement.columns)
    if with_headers and not context.settings.flag(HEADERS):
        raise StatementError(
            f"Cannot create {statement.kind.capitalize()} because schema with headers "
            "columns is disabled.",
            hint=f"To enable it, start the server with '{HEADERS}'=true.",
        )


def _refuse_lambdas(query: ast.Query) -> None:
    for expr in expressions((query,)):
        for function in collect(expr, ex.Lambda):
            raise StatementError(
                "Lambda functions are disabled.",
                hint=f"To enable them, start the server with '{LAMBDAS}'=true.",
                span=function.span,
            )
