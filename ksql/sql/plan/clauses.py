"""Checks which clauses go together, plans SELECT's expressions and table functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core import StatementError
from ksql.core.types import ROWTIME, KeyWindow, capabilities
from ksql.sql.binder import keys
from ksql.sql.binder.errors import describe
from ksql.sql.binder.joins import NotRepartitioned
from ksql.sql.plan.nodes import TableCall, TimeWindow
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.core import Span
    from ksql.sql.binder.relation import Relation
    from ksql.sql.binder.scope import FromSource
    from ksql.sql.binder.tables import BoundTableCall


class OnlyInPullQueries(StatementError):
    """A clause that needs all rows before it gives the first one."""

    def __init__(self, clause: str, emit: ast.Emission | None, span: Span | None = None) -> None:
        super().__init__(
            f"{clause} is only supported in pull queries.",
            detail="A query that follows its sources never has all rows to put in order or count.",
            hint="Leave EMIT out to get the rows as they are now."
            if emit
            else "Ask its result in that order: SELECT .. FROM the stream or table, without EMIT.",
            span=span,
        )


class NoGroupBy(StatementError):
    """A stored result of aggregates that has no key: all rows are one group."""

    def __init__(self, calls: Sequence[ex.Call], sink: str) -> None:
        shown = dict.fromkeys(
            describe(replace(call, args=call.args or (ex.Ref(ROWTIME),), star=False))
            for call in calls
        )
        super().__init__(
            "CREATE TABLE AS SELECT statement does not support aggregate function "
            f"[{', '.join(shown)}] without a GROUP BY clause.",
            detail=keys.missing(["1"], "grouping expression", sink),
            hint="Without GROUP BY all rows are one group with a constant as its key: "
            "push queries may ask for it, but it has no column to be stored under.",
        )


def check_order(query: ast.Query) -> None:
    """Refuse ORDER BY and OFFSET in a query that runs on.

    Raises: OnlyInPullQueries.
    """
    if query.order_by:
        raise OnlyInPullQueries("ORDER BY", query.emit, query.order_by[0].span)
    if query.offset is not None:
        raise OnlyInPullQueries("OFFSET", query.emit, query.span)


def check_windows(query: ast.Query) -> None:
    """Refuse a WINDOW without GROUP BY, and EMIT FINAL without a WINDOW.

    Raises: StatementError.
    """
    if query.window is not None and query.group_by is None:
        raise StatementError("WINDOW clause requires a GROUP BY clause.")
    if query.emit == "FINAL" and query.window is None:
        raise StatementError("EMIT FINAL is only supported for windowed aggregations.")


def check_tables(query: ast.Query, relation: Relation, *, persistent: bool) -> None:
    """Refuse PARTITION BY of a table or a join of tables, and persistent queries on windowed ones.

    Raises: StatementError.
    """
    first = relation.sources[0].source
    if first.kind != "TABLE":
        return
    if query.partition_by is not None:
        expressions = [describe(relation.scope.named(expr)) for expr in query.partition_by]
        raise NotRepartitioned(
            relation.join.key_names if relation.join else [c.name for c in first.schema.key],
            ", ".join(expressions),
            hint="To change a table's key, use GROUP BY with an aggregate function.",
        )
    if persistent and first.window is not None:
        raise StatementError(
            "KSQL does not support persistent queries on windowed tables.",
            hint="Read its topic through a stream with WINDOW_TYPE instead.",
        )


def check_formats(read: Sequence[FromSource], clause: str) -> None:
    """Refuse a clause over sources whose value format cannot be joined or grouped.

    Raises: StatementError.
    """
    sources = [source.source for source in read]
    wrong = [one for one in sources if not capabilities(one.value_format.name).joins_and_groups]
    if clause and wrong:
        raise StatementError(
            f"Source(s) {', '.join(one.name for one in wrong)} are using the "
            f"'{wrong[0].value_format.name}' value format. "
            f"This format does not yet support {clause}."
        )


def aliases(query: ast.Query) -> dict[str, ex.Expr]:
    """Return the names that SELECT gives, with what they stand for."""
    return {
        item.alias: item.expr
        for item in query.select
        if isinstance(item, ast.SelectItem) and item.alias is not None
    }


def selected(query: ast.Query) -> list[ex.Expr]:
    """Return the expressions of SELECT and HAVING."""
    exprs: list[ex.Expr] = []
    for item in query.select:
        match item:
            case ast.SelectItem():
                exprs.append(item.expr)
            case ast.SelectStructStar():
                exprs.append(item.base)
            case ast.SelectStar():
                continue
    if query.having is not None:
        exprs.append(query.having)
    return exprs


def key_window(window: TimeWindow) -> KeyWindow:
    """Return the windows in the keys of the result; sessions have no size."""
    return KeyWindow(window.kind, None if window.kind == "SESSION" else window.size_ms)


def table_call(call: BoundTableCall) -> TableCall:
    """Return the call as the plan has it."""
    return TableCall(
        name=call.name,
        function=call.function,
        overload=call.overload,
        args=call.args,
        type=call.type,
    )
