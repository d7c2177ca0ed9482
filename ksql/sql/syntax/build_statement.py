"""Statements: from rules of `ksql.lark` to the nodes of `ksql.sql.syntax.ast`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, get_args

from ksql.core import ParseError, Span
from ksql.sql.syntax import ast, expr
from ksql.sql.syntax.build import BUILDERS, fields, listed, node, only, rule, value, words
from ksql.sql.syntax.build_leaves import string_value
from ksql.sql.syntax.build_query import whole_number

if TYPE_CHECKING:
    from ksql.core.types import SqlType
    from ksql.sql.syntax.expr import Expr
    from ksql.sql.syntax.lexer import Token

words(
    "source_kind",
    "source_kinds",
    "if_not_exists",
    "if_exists",
    "not_exists",
    "or_replace",
    "read_only",
    "delete_topic",
    "control_verb",
    "all",
    "extensible",
    "topics",
    "connectors",
    "flat",
    "extended",
    "connector_scope",
    "from_beginning",
)
only("statement_text", "subject", "former", "upgraded")
listed("configuration", "columns", "names", "targets")

value(lambda: ("KEY", None), "key_mark")
value(lambda: ("PRIMARY KEY", None), "primary_key_mark")
value(lambda: ("HEADERS", None), "headers_mark")
node(ast.ColumnDef, "added_column")
value(lambda: None, "all_queries")
node(ast.Explain, "explain_statement", "explain_query")
fields(ast.DropSource, "kind if_exists name delete_topic", "drop_source")
fields(ast.ReplaceQuery, "_or_replace query_id properties insert", "replace_query")
fields(ast.DescribeSource, "name extended", "describe_source")
fields(ast.CreateConnector, "scope if_not_exists name properties", "create_connector")
fields(ast.DropConnector, "if_exists name", "drop_connector")
fields(ast.AssertTopic, "exists topic properties timeout", "assert_topic")
fields(ast.AssertSchema, "exists subject schema_id timeout", "assert_schema")
fields(ast.AssertValues, "name columns values", "assert_values")
fields(ast.AssertNullValues, "name columns values", "assert_null_values")
fields(ast.AssertSource, "kind name columns properties", "assert_source")


@rule("property")
def property_(
    span: Span, name: str, value: expr.Literal | expr.Variable | expr.Ref
) -> ast.Property:
    """Build ``name = literal``."""
    if isinstance(value, expr.Ref):
        raise ParseError(
            f"Got: '{value.name}'. A property must be a quoted text, a number or a boolean",
            span=value.span,
        )
    return ast.Property(name, value, span=span)


@rule("with_clause")
def with_clause(span: Span, *properties: ast.Property) -> tuple[ast.Property, ...]:
    """Return the properties of a source or a query, whose names have no case."""
    return tuple(replace(entry, name=entry.name.upper()) for entry in properties)


# --- sources


class CreateHead(NamedTuple):
    """The words of CREATE before the new source's name."""

    kind: ast.SourceKind
    or_replace: bool
    read_only: bool
    if_not_exists: bool


@rule("create_head")
def create_head(
    span: Span,
    replaces: str | None,
    read_only: str | None,
    kind: ast.SourceKind,
    missing: str | None,
) -> CreateHead:
    """Build ``CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS]``."""
    return CreateHead(kind, replaces is not None, read_only is not None, missing is not None)


@rule("create_source")
def create_source(
    span: Span,
    head: CreateHead,
    name: str,
    columns: tuple[ast.ColumnDef, ...] | None,
    properties: tuple[ast.Property, ...] | None,
) -> ast.CreateSource:
    """Build CREATE STREAM or TABLE over a topic."""
    for column in columns or ():
        _check_mark(head.kind, column)
    return ast.CreateSource(
        head.kind,
        name,
        columns or (),
        properties or (),
        head.or_replace,
        head.if_not_exists,
        head.read_only,
        span=span,
    )


class WrongKeyMark(ParseError):
    """KEY on a table's column, or PRIMARY KEY on a stream's."""

    def __init__(self, kind: ast.SourceKind, column: ast.ColumnDef, right: str) -> None:
        super().__init__(
            f"Column `{column.name}` is a '{column.mark}' column: "
            f"please use '{right}' for {kind.lower()}s.",
            hint="Tables have PRIMARY KEYs, which are unique and NON NULL.\n"
            "Streams have KEYs, which have no uniqueness or NON NULL constraints.",
            span=column.span,
        )

    def text(self) -> str:
        """Return the whole error.

        Its place is written as ksqlDB does once a statement has been read.
        """
        where = f"Line: {self.span.line}, Col: {self.span.column}: " if self.span else ""
        return f"{where}{self.message}\n{self.hint}"


def _check_mark(kind: ast.SourceKind, column: ast.ColumnDef) -> None:
    right = "KEY" if kind == "STREAM" else "PRIMARY KEY"
    if column.mark in {"KEY", "PRIMARY KEY"} and column.mark != right:
        raise WrongKeyMark(kind, column, right)


@rule("create_as_select")
def create_as_select(
    span: Span,
    head: CreateHead,
    name: str,
    properties: tuple[ast.Property, ...] | None,
    query: ast.Query,
) -> ast.CreateAsSelect:
    """Build CREATE STREAM or TABLE from a query; such a source is never read-only."""
    if head.read_only:
        raise ParseError(
            "Syntax Error",
            detail=f"A SOURCE {head.kind} is declared over a topic, not by AS SELECT",
            span=query.span,
        )
    return ast.CreateAsSelect(
        head.kind, name, query, properties or (), head.or_replace, head.if_not_exists, span=span
    )


@rule("column_def")
def column_def(
    span: Span, name: str, type_: SqlType, mark: tuple[ast.ColumnMark, str | None] | None
) -> ast.ColumnDef:
    """Build ``name type [mark]``."""
    if mark is None:
        return ast.ColumnDef(name, type_, span=span)
    return ast.ColumnDef(name, type_, *mark, span=span)


@rule("header_mark")
def header_mark(span: Span, key: Token) -> tuple[ast.ColumnMark, str]:
    """Build ``HEADER('key')``."""
    return "HEADER", string_value(key)


@rule("alter_source")
def alter_source(
    span: Span, kind: ast.SourceKind, name: str, *columns: ast.ColumnDef
) -> ast.AlterSource:
    """Build ALTER STREAM or TABLE."""
    return ast.AlterSource(kind, name, columns, span=span)


class InsertTarget(NamedTuple):
    """The source, or a column of it, that a statement writes to, and where it names it."""

    name: str
    span: Span


@rule("target", "inserted")
def target(span: Span, name: str) -> InsertTarget:
    """Return a name after ``INSERT INTO`` or ``DELETE FROM``."""
    return InsertTarget(name, span)


@rule("insert_select")
def insert_select(
    span: Span, into: InsertTarget, properties: tuple[ast.Property, ...] | None, query: ast.Query
) -> ast.InsertInto:
    """Build INSERT INTO .. SELECT."""
    return ast.InsertInto(into.name, query, properties or (), into.span, span=span)


@rule("insert_values")
def insert_values(
    span: Span,
    into: InsertTarget,
    columns: tuple[InsertTarget, ...] | None,
    values: tuple[Expr, ...] | None,
) -> ast.InsertValues:
    """Build INSERT INTO .. VALUES."""
    names, places = zip(*columns, strict=True) if columns else ((), ())
    return ast.InsertValues(into.name, names, values or (), into.span, places, span=span)


@rule("delete_from")
def delete_from(span: Span, source: InsertTarget, where: Expr) -> ast.DeleteFrom:
    """Build DELETE FROM .. WHERE."""
    return ast.DeleteFrom(source.name, where, source.span, span=span)


# --- queries that run, and the catalogue


@rule("show")
def show(span: Span, shown: ast.Show) -> ast.Show:
    """Build SHOW, also called LIST."""
    return replace(shown, span=span)


@rule("catalogue")
def catalogue(span: Span, what: ast.Catalogue, extended: str | None = None) -> ast.Show:
    """Return a catalogue without further words, or with EXTENDED."""
    return ast.Show(what, extended is not None)


@rule("topic_catalogue")
def topic_catalogue(
    span: Span, all_: str | None, what: ast.Catalogue, extended: str | None
) -> ast.Show:
    """Build ``[ALL] TOPICS [EXTENDED]``."""
    return ast.Show(what, extended is not None, all_ is not None)


@rule("connector_catalogue")
def connector_catalogue(
    span: Span, scope: ast.ConnectorScope | None, what: ast.Catalogue
) -> ast.Show:
    """Build ``[SOURCE|SINK] CONNECTORS``."""
    return ast.Show(what, scope=scope or "")


@rule("upgrade_catalogue")
def upgrade_catalogue(span: Span, name: str | None) -> ast.Show:
    """Build ``UPGRADES [FOR name]``."""
    return ast.Show("UPGRADES", source=name)


class UpgradeTarget(NamedTuple):
    """The stream, table or query of which an upgrade is given up or rolled back."""

    name: str
    of_query: bool


@rule("changed_source")
def changed_source(_span: Span, name: str) -> UpgradeTarget:
    """Build the name of a stream or table."""
    return UpgradeTarget(name, of_query=False)


@rule("changed_query")
def changed_query(_span: Span, query_id: str) -> UpgradeTarget:
    """Build ``QUERY id``."""
    return UpgradeTarget(query_id, of_query=True)


@rule("abort_upgrade")
def abort_upgrade(span: Span, changed: UpgradeTarget) -> ast.UpgradeControl:
    """Build ABORT UPGRADE."""
    return ast.UpgradeControl("ABORT", changed.name, of_query=changed.of_query, span=span)


@rule("rollback_upgrade")
def rollback_upgrade(
    span: Span, changed: UpgradeTarget, upgrade_id: str | None
) -> ast.UpgradeControl:
    """Build ROLLBACK UPGRADE."""
    return ast.UpgradeControl("ROLLBACK", changed.name, upgrade_id, changed.of_query, span=span)


@rule("describe_all")
def describe_all(span: Span, kinds: str, extended: str | None) -> ast.DescribeAll:
    """Build DESCRIBE STREAMS or TABLES."""
    return ast.DescribeAll(
        "STREAM" if kinds == "STREAMS" else "TABLE", extended is not None, span=span
    )


@rule("describe_function")
def describe_function(span: Span, name: str) -> ast.DescribeFunction:
    """Build DESCRIBE FUNCTION; function names have no case."""
    return ast.DescribeFunction(name.upper(), span=span)


@rule("print_topic")
def print_topic(
    span: Span, topic: str, beginning: str | None, interval: int | None, limit: int | None
) -> ast.PrintTopic:
    """Build PRINT."""
    every = 1 if interval is None else interval
    if every < 1:
        raise ParseError("INTERVAL must be at least 1", span=span)
    return ast.PrintTopic(topic, beginning is not None, every, limit, span=span)


@rule("sample", "print_limit", "schema_id")
def count(span: Span, number: Token) -> int:
    """Return a word and a number."""
    return whole_number(number)


# --- types and connectors


@rule("create_type")
def create_type(span: Span, missing: str | None, name: str, type_: SqlType) -> ast.CreateType:
    """Build CREATE TYPE; names of types have no case, quoted or not."""
    return ast.CreateType(name.upper(), type_, missing is not None, span=span)


@rule("drop_type")
def drop_type(span: Span, missing: str | None, name: str) -> ast.DropType:
    """Build DROP TYPE."""
    return ast.DropType(name.upper(), missing is not None, span=span)


# --- assertions


# --- the others: the class takes the parts of the rule


def _by_name() -> None:
    """Let a rule of a class's own name make the class: ``set_property``, ``SetProperty``."""
    for kind in get_args(ast.Statement):
        name = re.sub(r"\B([A-Z])", r"_\1", kind.__name__).lower()
        if not hasattr(BUILDERS, name):
            node(kind, name)


_by_name()
