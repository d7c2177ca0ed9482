"""Canonical SQL: a tree as text that reads back as the same tree.

Source: the layout of ksqlDB's formatters, which users meet in SHOW QUERIES and in error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.ident import quote, string_literal
from ksql.syntax import ast
from ksql.syntax.print_expr import base, comma, expression, literal
from ksql.types.text import type_text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["expression", "query", "statement"]

_JOINS = {
    "INNER": "INNER JOIN",
    "LEFT": "LEFT OUTER JOIN",
    "RIGHT": "RIGHT OUTER JOIN",
    "FULL": "FULL OUTER JOIN",
}


def statement(stmt: ast.Statement) -> str:
    """Return the statement in SQL, with its semicolon."""
    return _body(stmt) + ";"


def query(select: ast.Query) -> str:
    """Return a query in SQL, one clause on each line."""
    lines = [_select(select.select), *_from(select.source)]
    if select.window is not None:
        lines.append(f"WINDOW {_window(select.window)}")
    if select.where is not None:
        lines.append(f"WHERE {expression(select.where)}")
    if select.group_by is not None:
        lines.append(f"GROUP BY {comma(select.group_by) or '()'}")
    if select.partition_by is not None:
        lines.append(f"PARTITION BY {comma(select.partition_by) or '()'}")
    if select.having is not None:
        lines.append(f"HAVING {expression(select.having)}")
    if select.order_by is not None:
        lines.append(f"ORDER BY {', '.join(map(_order, select.order_by))}")
    if select.emit is not None:
        lines.append(f"EMIT {select.emit}")
    if select.limit is not None:
        lines.append(f"LIMIT {select.limit}")
    if select.offset is not None:
        lines.append(f"OFFSET {select.offset}")
    return "\n".join(lines)


# --- the parts of a query


def _select(terms: tuple[ast.SelectTerm, ...]) -> str:
    if len(terms) == 1:
        return f"SELECT {_term(terms[0])}"
    return "SELECT\n  " + ",\n  ".join(map(_term, terms))


def _term(term: ast.SelectTerm) -> str:
    match term:
        case ast.SelectItem():
            alias = "" if term.alias is None else f" {quote(term.alias)}"
            return expression(term.expr) + alias
        case ast.SelectStar():
            return "*" if term.source is None else f"{quote(term.source)}.*"
        case ast.SelectStructStar():
            return f"{base(term.base)}->*"


def _order(item: ast.OrderItem) -> str:
    direction = " DESC" if item.descending else ""
    nulls = "" if item.nulls is None else f" NULLS {item.nulls}"
    return expression(item.expr) + direction + nulls


def _from(relation: ast.Relation) -> list[str]:
    joins: list[str] = []
    while isinstance(relation, ast.Join):
        within = "" if relation.within is None else f" {_within(relation.within)}"
        joins.append(
            f"{_JOINS[relation.kind]} {_source(relation.right)}{within} "
            f"ON ({expression(relation.criteria)})"
        )
        relation = relation.left
    return [f"FROM {_source(relation)}", *reversed(joins)]


def _source(source: ast.SourceRef) -> str:
    return f"{quote(source.name)} {quote(source.alias)}"


def _within(within: ast.Within) -> str:
    before, after = _duration(within.before), _duration(within.after)
    span = before if within.before == within.after else f"({before}, {after})"
    grace = "" if within.grace is None else f" GRACE PERIOD {_duration(within.grace)}"
    return f"WITHIN {span}{grace}"


def _window(window: ast.Window) -> str:
    size = _duration(window.size)
    parts = [size if window.kind == "SESSION" else f"SIZE {size}"]
    if window.advance is not None:
        parts.append(f"ADVANCE BY {_duration(window.advance)}")
    if window.retention is not None:
        parts.append(f"RETENTION {_duration(window.retention)}")
    if window.grace is not None:
        parts.append(f"GRACE PERIOD {_duration(window.grace)}")
    return f"{window.kind} ({', '.join(parts)})"


def _duration(duration: ast.Duration) -> str:
    return f"{duration.amount} {duration.unit}"


# --- statements


def _body(stmt: ast.Statement) -> str:  # noqa: C901  one arm for each statement
    if isinstance(stmt, ast.Description):
        return f"DESCRIBE {_description(stmt)}"
    if isinstance(stmt, ast.Setting):
        return _setting(stmt)
    if isinstance(stmt, ast.Assertion):
        return f"ASSERT {_assertion(stmt)}"
    match stmt:
        case ast.Query():
            return query(stmt)
        case ast.CreateSource():
            return f"{_create(stmt)}{_columns(stmt.columns)}{_properties(stmt.properties)}"
        case ast.CreateAsSelect():
            return f"{_create(stmt)}{_properties(stmt.properties)} AS {query(stmt.query)}"
        case ast.InsertInto():
            head = f"INSERT INTO {quote(stmt.name)}{_properties(stmt.properties)}"
            return f"{head} {query(stmt.query)}"
        case ast.InsertValues():
            head = f"INSERT INTO {quote(stmt.name)}{_names(stmt.columns)}"
            return f"{head} VALUES ({comma(stmt.values)})"
        case ast.AlterSource():
            added = (f"ADD COLUMN {_column(column)}" for column in stmt.columns)
            return f"ALTER {stmt.kind} {quote(stmt.name)} {', '.join(added)}"
        case ast.DropSource():
            tail = " DELETE TOPIC" if stmt.delete_topic else ""
            return f"DROP {stmt.kind} {_if_exists(stmt.if_exists)}{quote(stmt.name)}{tail}"
        case ast.QueryControl():
            return f"{stmt.action} {'ALL' if stmt.query_id is None else quote(stmt.query_id)}"
        case ast.Explain():
            target = stmt.target
            return f"EXPLAIN {quote(target) if isinstance(target, str) else _body(target)}"
        case ast.Show():
            return f"SHOW {_show(stmt)}"
        case ast.PrintTopic():
            return _print(stmt)
        case ast.CreateType():
            head = f"CREATE TYPE {_if_not_exists(stmt.if_not_exists)}{quote(stmt.name)}"
            return f"{head} AS {type_text(stmt.type)}"
        case ast.DropType():
            return f"DROP TYPE {_if_exists(stmt.if_exists)}{quote(stmt.name)}"
        case ast.CreateConnector():
            missing = _if_not_exists(stmt.if_not_exists)
            head = f"CREATE {stmt.scope} CONNECTOR {missing}{quote(stmt.name)}"
            return head + _properties(stmt.properties)
        case ast.DropConnector():
            return f"DROP CONNECTOR {_if_exists(stmt.if_exists)}{quote(stmt.name)}"


def _description(stmt: ast.Description) -> str:
    match stmt:
        case ast.DescribeSource():
            return f"{_described(stmt.name)}{_extended(stmt.extended)}"
        case ast.DescribeAll():
            return f"{stmt.kind}S{_extended(stmt.extended)}"
        case ast.DescribeFunction():
            return f"FUNCTION {quote(stmt.name)}"
        case ast.DescribeConnector():
            return f"CONNECTOR {quote(stmt.name)}"


def _setting(stmt: ast.Setting) -> str:
    match stmt:
        case ast.SetProperty():
            return f"SET {string_literal(stmt.name)}={string_literal(stmt.value)}"
        case ast.UnsetProperty():
            return f"UNSET {string_literal(stmt.name)}"
        case ast.AlterSystem():
            return f"ALTER SYSTEM {string_literal(stmt.name)}={string_literal(stmt.value)}"
        case ast.Define():
            return f"DEFINE {stmt.name}={string_literal(stmt.value)}"
        case ast.Undefine():
            return f"UNDEFINE {stmt.name}"
        case ast.RunScript():
            return f"RUN SCRIPT {string_literal(stmt.path)}"


def _assertion(stmt: ast.Assertion) -> str:
    match stmt:
        case ast.AssertTopic():
            head = f"{_absent(stmt.exists)}TOPIC {string_literal(stmt.topic)}"
            return f"{head}{_properties(stmt.properties)}{_timeout(stmt.timeout)}"
        case ast.AssertSchema():
            subject = "" if stmt.subject is None else f" SUBJECT {string_literal(stmt.subject)}"
            number = "" if stmt.schema_id is None else f" ID {stmt.schema_id}"
            tail = subject + number + _timeout(stmt.timeout)
            return f"{_absent(stmt.exists)}SCHEMA{tail}"
        case ast.AssertValues():
            head = f"VALUES {quote(stmt.name)}{_names(stmt.columns)}"
            return f"{head} VALUES ({comma(stmt.values)})"
        case ast.AssertNullValues():
            head = f"NULL VALUES {quote(stmt.name)}{_names(stmt.columns)}"
            return f"{head} KEY ({comma(stmt.values)})"
        case ast.AssertSource():
            head = f"{stmt.kind} {quote(stmt.name)}"
            return f"{head}{_columns(stmt.columns)}{_properties(stmt.properties)}"


def _create(stmt: ast.CreateSource | ast.CreateAsSelect) -> str:
    replace = "OR REPLACE " if stmt.or_replace else ""
    read_only = "SOURCE " if isinstance(stmt, ast.CreateSource) and stmt.read_only else ""
    missing = _if_not_exists(stmt.if_not_exists)
    return f"CREATE {replace}{read_only}{stmt.kind} {missing}{quote(stmt.name)}"


def _columns(columns: tuple[ast.ColumnDef, ...]) -> str:
    return f" ({', '.join(map(_column, columns))})" if columns else ""


def _column(column: ast.ColumnDef) -> str:
    mark = f" {column.mark}" if column.mark else ""
    header = "" if column.header_key is None else f"({string_literal(column.header_key)})"
    return f"{quote(column.name)} {type_text(column.type)}{mark}{header}"


def _properties(properties: tuple[ast.Property, ...]) -> str:
    if not properties:
        return ""
    inner = (f"{quote(entry.name)}={literal(entry.value)}" for entry in properties)
    return f" WITH ({', '.join(inner)})"


def _names(names: Iterable[str]) -> str:
    inner = ", ".join(map(quote, names))
    return f" ({inner})" if inner else ""


def _show(stmt: ast.Show) -> str:
    all_ = "ALL " if stmt.all_ else ""
    scope = f"{stmt.scope} " if stmt.scope else ""
    return f"{all_}{scope}{stmt.what}{_extended(stmt.extended)}"


def _described(name: str) -> str:
    return f"`{name}`" if name in {"TABLES", "FUNCTION"} else quote(name)


def _print(stmt: ast.PrintTopic) -> str:
    beginning = " FROM BEGINNING" if stmt.from_beginning else ""
    interval = f" INTERVAL {stmt.interval}" if stmt.interval != 1 else ""
    limit = "" if stmt.limit is None else f" LIMIT {stmt.limit}"
    return f"PRINT {string_literal(stmt.topic)}{beginning}{interval}{limit}"


def _if_exists(flag: bool) -> str:
    return "IF EXISTS " if flag else ""


def _if_not_exists(flag: bool) -> str:
    return "IF NOT EXISTS " if flag else ""


def _absent(exists: bool) -> str:
    return "" if exists else "NOT EXISTS "


def _extended(flag: bool) -> str:
    return " EXTENDED" if flag else ""


def _timeout(timeout: ast.Duration | None) -> str:
    return "" if timeout is None else f" TIMEOUT {_duration(timeout)}"
