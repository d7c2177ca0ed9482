"""Queries: from rules of `query.lark` to the nodes of `ksql.syntax.ast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ksql.base.errors import PREPARING, ParseError, Span
from ksql.syntax import ast
from ksql.syntax.build import rule, words
from ksql.syntax.build_leaves import PLURAL
from ksql.syntax.expr import IntLit

if TYPE_CHECKING:
    from ksql.syntax.expr import Expr, Literal
    from ksql.syntax.lexer import Token

T = TypeVar("T")
_LARGEST = str(2**63 - 1)
words("emission", "unit")


class BadLimit(ParseError):
    """A LIMIT that counts no rows."""

    def __init__(self) -> None:
        super().__init__(f"{PREPARING}Value must be integer for command: LIMIT")


def whole_number(token: Token) -> int:
    """The value of digits that stand for a count: 64 bits and not negative.

    Raises: ParseError for anything else.
    """
    digits = token.text.lstrip("0")
    if digits.startswith("-") or len(digits) > len(_LARGEST) or int(digits or 0) > int(_LARGEST):
        raise ParseError(f"Invalid numeric literal: {token.text}", span=token.span)
    return int(digits or 0)


@rule("query")
def query(
    span: Span,
    select: tuple[ast.SelectTerm, ...],
    source: ast.Relation,
    window: ast.Window | None,
    where: Expr | None,
    group_by: tuple[Expr, ...] | None,
    partition_by: tuple[Expr, ...] | None,
    having: Expr | None,
    emit: ast.Emission | None,
    limit: int | None,
) -> ast.Query:
    """SELECT with its clauses, each of them None if it is not there."""
    return ast.Query(
        select, source, window, where, group_by, partition_by, having, emit, limit, span=span
    )


@rule("select_terms")
def select_terms(span: Span, *terms: ast.SelectTerm) -> tuple[ast.SelectTerm, ...]:
    """The items of a SELECT clause."""
    return terms


@rule("star")
def star(span: Span) -> ast.SelectStar:
    """``*``."""
    return ast.SelectStar(span=span)


@rule("source_star")
def source_star(span: Span, source: str) -> ast.SelectStar:
    """``source.*``."""
    return ast.SelectStar(source, span=span)


@rule("struct_star")
def struct_star(span: Span, base: Expr) -> ast.SelectStructStar:
    """``base->*``."""
    return ast.SelectStructStar(base, span=span)


@rule("plain_item", "aliased_item")
def item(span: Span, value: Expr, alias: str | None = None) -> ast.SelectItem:
    """``value [AS alias]``."""
    return ast.SelectItem(value, alias, span=span)


# --- sources


@rule("source", "aliased_source")
def source(span: Span, name: str, alias: str | None = None) -> ast.SourceRef:
    """A source in FROM or JOIN."""
    return ast.SourceRef(name, alias or name, span=span)


@rule("inner_join")
def inner_join(span: Span) -> ast.JoinKind:
    """``[INNER]``."""
    return "INNER"


@rule("left_join")
def left_join(span: Span) -> ast.JoinKind:
    """``LEFT [OUTER]``."""
    return "LEFT"


@rule("right_join")
def right_join(span: Span) -> ast.JoinKind:
    """``RIGHT [OUTER]``."""
    return "RIGHT"


@rule("full_join")
def full_join(span: Span) -> ast.JoinKind:
    """``FULL [OUTER]``."""
    return "FULL"


@rule("join")
def join(
    span: Span,
    left: ast.Relation,
    kind: ast.JoinKind,
    right: ast.SourceRef,
    within: ast.Within | None,
    criteria: Expr,
) -> ast.Join:
    """``left JOIN right [WITHIN ..] ON criteria``."""
    return ast.Join(left, right, kind, criteria, within, span=span)


@rule("within_same")
def within_same(span: Span, both: ast.Duration, grace: ast.Duration | None) -> ast.Within:
    """``WITHIN 1 HOUR``."""
    return ast.Within(both, both, grace, span=span)


@rule("within_both")
def within_both(
    span: Span, before: ast.Duration, after: ast.Duration, grace: ast.Duration | None
) -> ast.Within:
    """``WITHIN (1 HOUR, 2 HOURS)``."""
    return ast.Within(before, after, grace, span=span)


# --- windows


@rule("duration")
def duration(span: Span, amount: Token, unit: str) -> ast.Duration:
    """``10 SECONDS``; the unit is made plural."""
    return ast.Duration(whole_number(amount), PLURAL[unit])


@rule("grace", "late", "retention", "timeout")
def same_duration(span: Span, length: ast.Duration) -> ast.Duration:
    """A length of time with its word before it."""
    return length


@rule("tumbling_window")
def tumbling_window(
    span: Span,
    size: ast.Duration,
    retention: ast.Duration | None,
    grace: ast.Duration | None,
) -> ast.Window:
    """``TUMBLING (SIZE ..)``."""
    return ast.Window("TUMBLING", size, None, retention, grace, span=span)


@rule("hopping_window")
def hopping_window(
    span: Span,
    size: ast.Duration,
    advance: ast.Duration,
    retention: ast.Duration | None,
    grace: ast.Duration | None,
) -> ast.Window:
    """``HOPPING (SIZE .., ADVANCE BY ..)``."""
    return ast.Window("HOPPING", size, advance, retention, grace, span=span)


@rule("session_window")
def session_window(
    span: Span,
    gap: ast.Duration,
    retention: ast.Duration | None,
    grace: ast.Duration | None,
) -> ast.Window:
    """``SESSION (..)``."""
    return ast.Window("SESSION", gap, None, retention, grace, span=span)


# --- clauses


@rule("window_clause")
def window_clause(
    span: Span, name: str | None = None, window: ast.Window | None = None
) -> ast.Window | None:
    """``[WINDOW [name] window]``; the name has no use."""
    return window


@rule("where_clause", "group_clause", "partition_clause", "having_clause", "emit_clause")
def clause(span: Span, content: T | None = None) -> T | None:
    """An optional clause with one part."""
    return content


@rule("limit_clause")
def limit_clause(span: Span, count: Literal | None = None) -> int | None:
    """``[LIMIT n]``; whether a negative one makes sense is for the query's kind to say."""
    if count is not None and not isinstance(count, IntLit):
        raise BadLimit
    return None if count is None else count.value


@rule("key_expressions")
def key_expressions(span: Span, *values: Expr) -> tuple[Expr, ...]:
    """The expressions of GROUP BY or PARTITION BY."""
    return values
