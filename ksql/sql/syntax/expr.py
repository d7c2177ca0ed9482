"""Expressions as they were written: names unresolved, types unknown.

Every node carries its span, which does not count when nodes are compared. Two expressions are the
same if they read the same; GROUP BY and projection are matched this way.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import Literal as OneOf

from ksql.core import Span
from ksql.core.types import SqlType

Sign = OneOf["+", "-"]
ArithmeticOp = OneOf["+", "-", "*", "/", "%"]
ComparisonOp = OneOf["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
IntervalUnit = OneOf["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]

NOWHERE = Span(0, 0, 1, 1)


def span_field() -> Span:
    """Return the field that holds a node's span."""
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Ref:
    """A column: ``col`` or ``source.col``."""

    name: str
    source: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class NullLit:
    """NULL."""

    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class BoolLit:
    """TRUE or FALSE."""

    value: bool
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class IntLit:
    """An integer literal; INTEGER if it fits 32 bits, else BIGINT."""

    value: int
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DecimalLit:
    """A literal with a point, of type DECIMAL; the text's digits and scale are kept."""

    value: decimal.Decimal
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DoubleLit:
    """A literal with an exponent."""

    value: float
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class StringLit:
    """A text in single quotes."""

    value: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class UnitLit:
    """A unit of time given to a function: DATEADD(DAYS, ..); singular is made plural."""

    unit: IntervalUnit
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Unary:
    """``+e`` or ``-e``."""

    op: Sign
    operand: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic: ``+ - * / %``. (``||`` is a Call of CONCAT.)."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; the DISTINCT ones are IS [NOT] DISTINCT FROM."""

    op: ComparisonOp
    left: Expr
    right: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Logical:
    """``AND`` or ``OR`` of two conditions."""

    op: OneOf["AND", "OR"]
    left: Expr
    right: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT e``."""

    operand: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Between:
    """``e [NOT] BETWEEN low AND high`` (NOT is a Not around it)."""

    operand: Expr
    low: Expr
    high: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class In:
    """``e IN (a, b, ..)``."""

    operand: Expr
    options: tuple[Expr, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Like:
    """``e LIKE pattern [ESCAPE 'c']``."""

    operand: Expr
    pattern: Expr
    escape: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class IsNull:
    """``e IS NULL``; IS NOT NULL is a Not around it when ``negated``."""

    operand: Expr
    negated: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class When:
    """One branch of a CASE."""

    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE [operand] WHEN .. THEN .. [ELSE ..] END``."""

    operand: Expr | None
    whens: tuple[When, ...]
    otherwise: Expr | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Cast:
    """``CAST(e AS type)``."""

    operand: Expr
    type: SqlType
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """``name(args)``; COUNT(*) has ``star``; the name is upper case."""

    name: str
    args: tuple[Expr, ...]
    star: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Lambda:
    """``(a, b) => body``."""

    params: tuple[str, ...]
    body: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Subscript:
    """``e[index]``."""

    base: Expr
    index: Expr
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Deref:
    """``e->field``."""

    base: Expr
    field: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ArrayExpr:
    """``ARRAY[a, b]``."""

    items: tuple[Expr, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class MapExpr:
    """``MAP(k := v, ..)``."""

    entries: tuple[tuple[Expr, Expr], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class StructExpr:
    """``STRUCT(name := e, ..)``."""

    fields: tuple[tuple[str, Expr], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Variable:
    """``${name}`` in place of a literal; substituted before binding."""

    name: str
    span: Span = span_field()


Literal = NullLit | BoolLit | IntLit | DecimalLit | DoubleLit | StringLit
Expr = (
    Ref
    | NullLit
    | BoolLit
    | IntLit
    | DecimalLit
    | DoubleLit
    | StringLit
    | UnitLit
    | Unary
    | Binary
    | Compare
    | Logical
    | Not
    | Between
    | In
    | Like
    | IsNull
    | Case
    | Cast
    | Call
    | Lambda
    | Subscript
    | Deref
    | ArrayExpr
    | MapExpr
    | StructExpr
    | Variable
)
