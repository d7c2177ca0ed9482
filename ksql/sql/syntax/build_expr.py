"""Expressions: from rules of `expr.lark` to the nodes of `ksql.sql.syntax.expr`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ksql.core import NotSupportedYet, ParseError, Span
from ksql.sql.syntax import expr
from ksql.sql.syntax.build import fields, listed, node, only, rule, value, words
from ksql.sql.syntax.build_leaves import PLURAL, string_value, unquote

if TYPE_CHECKING:
    from ksql.sql.syntax.expr import Expr
    from ksql.sql.syntax.lexer import Token

T = TypeVar("T")

_COMPARISONS: dict[str, expr.ComparisonOp] = {
    "=": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}

words("not", "comparator", "plus_minus", "times_over", "interval_unit")
only("parenthesis", "otherwise")
listed("branches", "expressions", "arguments", "map_entries", "struct_fields", "parameters")

node(partial(expr.Logical, "OR"), "logical_or")
node(partial(expr.Logical, "AND"), "logical_and")
node(expr.Not, "logical_not")
node(expr.Unary, "unary")  # the minus of a number is part of the number and never comes here
node(expr.Deref, "dereference")
node(expr.Subscript, "subscript")
node(expr.Cast, "cast")
value(expr.When, "when")
node(partial(expr.Case, None), "searched_case")
node(expr.Case, "simple_case")
node(expr.Lambda, "lambda_many")
fields(expr.IsNull, "operand negated", "null_test")
fields(expr.ArrayExpr, "items", "array_constructor")
fields(expr.MapExpr, "entries", "map_constructor")
fields(expr.StructExpr, "fields", "struct_constructor")


# --- operators


@rule("comparison")
def comparison(span: Span, left: Expr, op: str, right: Expr) -> Expr:
    """Build ``left = right`` and its like; ``!=`` is ``<>``."""
    return expr.Compare(_COMPARISONS[op], left, right, span=span)


@rule("between")
def between(span: Span, operand: Expr, negated: str | None, low: Expr, high: Expr) -> Expr:
    """Build ``operand [NOT] BETWEEN low AND high``."""
    return _negated(negated, expr.Between(operand, low, high, span=span))


@rule("in_list")
def in_list(span: Span, operand: Expr, negated: str | None, *options: Expr) -> Expr:
    """Build ``operand [NOT] IN (options)``."""
    return _negated(negated, expr.In(operand, options, span=span))


@rule("like")
def like(span: Span, operand: Expr, negated: str | None, pattern: Expr, escape: str | None) -> Expr:
    """Build ``operand [NOT] LIKE pattern [ESCAPE 'c']``."""
    return _negated(negated, expr.Like(operand, pattern, escape, span=span))


@rule("escape")
def escape(span: Span, token: Token) -> str:
    """Return the one character that takes a wildcard's meaning away."""
    character = string_value(token)
    if len(character) != 1:
        raise ParseError(f"Expected single character escape but got: {character}", span=token.span)
    return character


@rule("distinct_test")
def distinct_test(span: Span, left: Expr, negated: str | None, right: Expr) -> Expr:
    """Build ``left IS [NOT] DISTINCT FROM right``."""
    if negated:
        return expr.Compare("IS NOT DISTINCT FROM", left, right, span=span)
    return expr.Compare("IS DISTINCT FROM", left, right, span=span)


def _negated(negated: str | None, positive: Expr) -> Expr:
    return expr.Not(positive, span=positive.span) if negated else positive


@rule("concatenation")
def concatenation(span: Span, left: Expr, right: Expr) -> Expr:
    """Build ``left || right``, which is CONCAT."""
    return expr.Call("CONCAT", (left, right), span=span)


@rule("arithmetic")
def arithmetic(span: Span, left: Expr, op: expr.ArithmeticOp, right: Expr) -> Expr:
    """Build ``left + right`` and its like."""
    return expr.Binary(op, left, right, span=span)


@rule("at_time_zone")
def at_time_zone(span: Span, operand: Expr, zone: Token) -> Expr:
    """Refuse ``operand AT TIME ZONE 'zone'``, in the language and nowhere implemented."""
    raise NotSupportedYet("AT TIME ZONE", span=span)


# --- primaries


@rule("column")
def column(span: Span, token: Token) -> Expr:
    """Return a column by its name alone."""
    name = unquote(token.text) if token.type == "QUOTED" else token.text.upper()
    return expr.Ref(name, span=span)


@rule("qualified_column")
def qualified_column(span: Span, source: str, name: str) -> Expr:
    """Build ``source.column``."""
    return expr.Ref(name, source, span=span)


@rule("map_entry", "struct_field")
def entry(span: Span, key: T, value: Expr) -> tuple[T, Expr]:
    """Build ``key := value``."""
    return key, value


# --- calls


@rule("count_star")
def count_star(span: Span, name: str) -> Expr:
    """Build ``COUNT(*)``."""
    return expr.Call(name.upper(), (), star=True, span=span)


@rule("function_call")
def function_call(span: Span, name: str, arguments: tuple[Expr, ...] | None) -> Expr:
    """Build ``name(arguments)``; function names have no case."""
    return expr.Call(name.upper(), arguments or (), span=span)


@rule("unit_argument")
def unit_argument(span: Span, word: str) -> Expr:
    """Return a unit of time given to a function; singular is the same as plural."""
    return expr.UnitLit(PLURAL[word], span=span)


@rule("lambda_one")
def lambda_one(span: Span, parameter: str, body: Expr) -> Expr:
    """Build ``x => body``."""
    return expr.Lambda((parameter,), body, span=span)
