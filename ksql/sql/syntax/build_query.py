"""Queries: from rules of `query.lark` to the nodes of `ksql.sql.syntax.ast`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from ksql.core import PREPARING, ParseError, Span
from ksql.core.types import INT_MAX, INT_MIN
from ksql.sql.syntax import ast
from ksql.sql.syntax.build import fields, listed, node, only, rule, value, words
from ksql.sql.syntax.build_leaves import PLURAL
from ksql.sql.syntax.expr import Expr, IntLit
from ksql.sql.syntax.expr import Literal as LiteralExpr

if TYPE_CHECKING:
    from ksql.sql.syntax.lexer import Token

_LARGEST = str(2**63 - 1)
words("emission", "unit", "direction", "nulls_place")
only("grace", "late", "retention", "timeout", "nulls")
only("where_clause", "group_clause", "partition_clause", "having_clause", "emit_clause")
only("order_clause")
listed("select_terms", "key_expressions", "order_items")

node(ast.Query, "query")
node(ast.SelectStar, "star", "source_star")
node(ast.SelectStructStar, "struct_star")
node(ast.SelectItem, "plain_item", "aliased_item")
value(lambda: "INNER", "inner_join")
value(lambda: "LEFT", "left_join")
value(lambda: "RIGHT", "right_join")
value(lambda: "FULL", "full_join")
fields(ast.Join, "left kind right within criteria", "join")
node(ast.Within, "within_both")
node(partial(ast.Window, "HOPPING"), "hopping_window")


class BadCount(ParseError):
    """A LIMIT or OFFSET that is no INTEGER."""

    def __init__(self, clause: Literal["LIMIT", "OFFSET"]) -> None:
        super().__init__(f"{PREPARING}Value must be integer for command: {clause}")


def whole_number(token: Token) -> int:
    """Return the value of digits that stand for a count: 64 bits and not negative.

    Raises: ParseError for anything else.
    """
    digits = token.text.lstrip("0")
    if digits.startswith("-") or len(digits) > len(_LARGEST) or int(digits or 0) > int(_LARGEST):
        raise ParseError(f"Invalid numeric literal: {token.text}", span=token.span)
    return int(digits or 0)


# --- sources


@rule("source", "aliased_source")
def source(span: Span, name: str, alias: str | None = None) -> ast.SourceRef:
    """Return a source in FROM or JOIN."""
    return ast.SourceRef(name, alias or name, span=span)


@rule("within_same")
def within_same(span: Span, both: ast.Duration, grace: ast.Duration | None) -> ast.Within:
    """Build ``WITHIN 1 HOUR``."""
    return ast.Within(both, both, grace, span=span)


# --- windows


@rule("duration")
def duration(span: Span, amount: Token, unit: str) -> ast.Duration:
    """Build ``10 SECONDS``; the unit is made plural."""
    return ast.Duration(whole_number(amount), PLURAL[unit])


def _without_advance(
    kind: Literal["TUMBLING", "SESSION"],
    size: ast.Duration,
    retention: ast.Duration | None,
    grace: ast.Duration | None,
    *,
    span: Span,
) -> ast.Window:
    return ast.Window(kind, size, None, retention, grace, span=span)


node(partial(_without_advance, "TUMBLING"), "tumbling_window")
node(partial(_without_advance, "SESSION"), "session_window")


@rule("window_clause")
def window_clause(
    span: Span, name: str | None = None, window: ast.Window | None = None
) -> ast.Window | None:
    """Build ``[WINDOW [name] window]``; the name has no use."""
    return window


@rule("limit_clause")
def limit_clause(span: Span, count: LiteralExpr | None = None) -> int | None:
    """Build ``[LIMIT n]``; whether a negative one makes sense is for the query's kind to say."""
    return _count("LIMIT", count)


@rule("offset_clause")
def offset_clause(span: Span, count: LiteralExpr | None = None) -> int | None:
    """Build ``[OFFSET n]``."""
    return _count("OFFSET", count)


def _count(clause: Literal["LIMIT", "OFFSET"], count: LiteralExpr | None) -> int | None:
    if count is None:
        return None
    if not isinstance(count, IntLit) or not INT_MIN <= count.value <= INT_MAX:
        raise BadCount(clause)
    return count.value


# --- ORDER BY


@rule("order_item")
def order_item(
    span: Span, expr: Expr, direction: str | None, nulls: ast.NullsPlace | None
) -> ast.OrderItem:
    """Build ``expr [ASC|DESC] [NULLS FIRST|LAST]``."""
    return ast.OrderItem(expr, direction == "DESC", nulls, span=span)
