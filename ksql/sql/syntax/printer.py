"""Canonical SQL: statements and expressions as text that reads back as the same tree.

Source: the layout of ksqlDB's formatters, which users meet in SHOW QUERIES and in error messages.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

from ksql.core import quote, string_literal
from ksql.core.types import type_text
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.lexer import SINGULAR_UNITS, UNIT_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core.types import SqlType
    from ksql.sql.syntax.expr import Expr


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
        case ast.ReplaceQuery():
            head = f"CREATE OR REPLACE QUERY {quote(stmt.query_id)}{_properties(stmt.properties)}"
            return f"{head} AS {_body(stmt.insert)}"
        case ast.InsertValues():
            head = f"INSERT INTO {quote(stmt.name)}{_names(stmt.columns)}"
            return f"{head} VALUES ({comma(stmt.values)})"
        case ast.DeleteFrom():
            return f"DELETE FROM {quote(stmt.name)} WHERE {expression(stmt.where)}"  # noqa: S608 - printed
        case ast.AlterSource():
            added = (f"ADD COLUMN {_column(column)}" for column in stmt.columns)
            return f"ALTER {stmt.kind} {quote(stmt.name)} {', '.join(added)}"
        case ast.DropSource():
            tail = " DELETE TOPIC" if stmt.delete_topic else ""
            return f"DROP {stmt.kind} {_if_exists(stmt.if_exists)}{quote(stmt.name)}{tail}"
        case ast.QueryControl():
            return f"{stmt.action} {'ALL' if stmt.query_id is None else quote(stmt.query_id)}"
        case ast.UpgradeControl():
            former = "" if stmt.upgrade_id is None else f" TO {string_literal(stmt.upgrade_id)}"
            named = f"QUERY {quote(stmt.name)}" if stmt.of_query else quote(stmt.name)
            return f"{stmt.action} UPGRADE OF {named}{former}"
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
        case ast.DescribeUpgrade():
            return f"UPGRADE {string_literal(stmt.upgrade_id)}"


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
    source = "" if stmt.source is None else f" FOR {quote(stmt.source)}"
    return f"{all_}{scope}{stmt.what}{_extended(stmt.extended)}{source}"


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


_CONSTRUCTORS = frozenset(("ARRAY", "MAP", "STRUCT"))
_LOOSE = (ex.Unary, ex.Lambda)


class Writer:
    """Writes expressions, with brackets around every operator; a subclass changes the parts."""

    def write(self, expr: Expr) -> str:  # noqa: C901  one arm for each node
        """Return the expression in SQL."""
        write = self.write
        match expr:
            case ex.Ref():
                return self.column(expr)
            case (
                ex.NullLit()
                | ex.BoolLit()
                | ex.IntLit()
                | ex.DecimalLit()
                | ex.DoubleLit()
                | ex.StringLit()
                | ex.Variable()
            ):
                return self.literal(expr)
            case ex.UnitLit():
                return expr.unit
            case ex.Unary():
                return expr.op + self.operand(write(expr.operand))
            case ex.Binary() | ex.Compare() | ex.Logical():
                return f"({write(expr.left)} {expr.op} {write(expr.right)})"
            case ex.Not():
                return f"(NOT {write(expr.operand)})"
            case ex.Between():
                return f"({write(expr.operand)} BETWEEN {write(expr.low)} AND {write(expr.high)})"
            case ex.In():
                return f"({write(expr.operand)} IN ({self.comma(expr.options)}))"
            case ex.Like():
                escape = "" if expr.escape is None else f" ESCAPE {string_literal(expr.escape)}"
                return f"({write(expr.operand)} LIKE {write(expr.pattern)}{escape})"
            case ex.IsNull():
                return f"({write(expr.operand)} IS {'NOT ' if expr.negated else ''}NULL)"
            case ex.Case():
                return self._case(expr)
            case ex.Cast():
                return f"CAST({write(expr.operand)} AS {self.type(expr.type)})"
            case ex.Call():
                return self.call(expr, "*" if expr.star else self.comma(expr.args))
            case ex.Lambda():
                return f"{self.parameters(expr.params)} => {write(expr.body)}"
            case ex.Subscript():
                return f"{self.base(expr.base)}[{write(expr.index)}]"
            case ex.Deref():
                return f"{self.base(expr.base)}->{quote(expr.field)}"
            case ex.ArrayExpr():
                return f"ARRAY[{self.comma(expr.items)}]"
            case ex.MapExpr():
                entries = (f"{write(key)}:={write(value)}" for key, value in expr.entries)
                return f"MAP({', '.join(entries)})"
            case ex.StructExpr():
                fields = (f"{quote(name)}:={write(value)}" for name, value in expr.fields)
                return f"STRUCT({', '.join(fields)})"

    def comma(self, exprs: Iterable[Expr]) -> str:
        """Return the expressions with commas between them."""
        return ", ".join(map(self.write, exprs))

    def _case(self, expr: ex.Case) -> str:
        parts = ["CASE"]
        if expr.operand is not None:
            parts.append(self.write(expr.operand))
        parts += [f"WHEN {self.write(w.condition)} THEN {self.write(w.result)}" for w in expr.whens]
        if expr.otherwise is not None:
            parts.append(f"ELSE {self.write(expr.otherwise)}")
        return f"({' '.join(parts)} END)"

    def column(self, ref: ex.Ref) -> str:
        """Return the name of a column."""
        return quote(ref.name) if ref.source is None else qualified(ref.source, ref.name)

    def literal(self, value: ex.Literal | ex.Variable) -> str:
        """Return a literal as it is written."""
        return literal(value)

    def operand(self, text: str) -> str:
        """Return the operand of a sign: two minuses open a comment, and `-5` is a literal."""
        if text[0].isdigit():
            return f"({text})"
        return " " + text if text[0] == "-" else text

    def type(self, type_: SqlType) -> str:
        """Return the type of a CAST."""
        return type_text(type_)

    def call(self, expr: ex.Call, args: str) -> str:
        """Return the call of a function."""
        name = f"`{expr.name}`" if expr.name in _CONSTRUCTORS else quote(expr.name)
        first = expr.args[0] if expr.args else None
        if (
            expr.name in UNIT_FUNCTIONS
            and isinstance(first, ex.Ref)
            and first.name in SINGULAR_UNITS
        ):
            args = args.replace(first.name, f"`{first.name}`", 1)
        return f"{name}({args})"

    def parameters(self, names: tuple[str, ...]) -> str:
        """Return the parameters of a lambda."""
        return f"({', '.join(map(quote, names))})"

    def base(self, expr: Expr) -> str:
        """Return an expression where it is indexed or dereferenced."""
        if isinstance(expr, _LOOSE):
            return f"({self.write(expr)})"
        if isinstance(expr, ex.Ref) and expr.source is None and expr.name in _CONSTRUCTORS:
            return f"`{expr.name}`"
        return self.write(expr)


def literal(value: ex.Literal | ex.Variable) -> str:
    """Return a literal as it is written."""
    match value:
        case ex.NullLit():
            return "null"
        case ex.BoolLit():
            return "true" if value.value else "false"
        case ex.IntLit():
            return str(value.value)
        case ex.DecimalLit():
            text = format(value.value, "f")
            return text if "." in text else text + "."
        case ex.DoubleLit():
            digits = decimal.Decimal(repr(value.value)).normalize()
            return f"{digits:E}".replace("E+", "E")
        case ex.StringLit():
            return string_literal(value.value)
        case ex.Variable():
            return f"${{{value.name}}}"


def qualified(source: str, name: str) -> str:
    """Print ``source.name``, each quoted only where it must be."""
    if name[:1].isdigit() and quote(name) == name:
        return f"{quote(source)}.`{name}`"  # after a point, digits open a number
    return f"{quote(source)}.{quote(name)}"


_CANONICAL = Writer()
expression = _CANONICAL.write
"""The expression in SQL."""
comma = _CANONICAL.comma
base = _CANONICAL.base
