"""Expressions as error messages and logs show them: fully bracketed, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base import ident
from ksql.syntax import expr as ex
from ksql.syntax.print_expr import literal
from ksql.types import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.base.errors import Span


def place(span: Span) -> str:
    """``Line: L, Col: C: `` of a span, nothing for a node that was not read from a text."""
    return "" if span is ex.NOWHERE else f"Line: {span.line}, Col: {span.column}: "


def type_name(type_: model.SqlType) -> str:
    """Return the type; that of an untyped NULL in small letters."""
    return "null" if type_ == model.NULL else str(type_)


def _list(items: Iterable[ex.Expr]) -> str:
    return ", ".join(map(describe, items))


def describe(node: ex.Expr) -> str:  # noqa: C901 (one arm per node)
    """Return the expression as it was written, spelled out."""
    match node:
        case ex.Ref(name, source):
            prefix = f"{ident.quote(source)}." if source else ""
            return prefix + ident.quote(name)
        case ex.NullLit():
            return "null"
        case ex.BoolLit(value):
            return "true" if value else "false"
        case ex.IntLit(value):
            return str(value)
        case ex.DecimalLit(value):
            return f"{value:f}"
        case ex.DoubleLit():
            return literal(node)
        case ex.StringLit(value):
            return ident.string_literal(value)
        case ex.UnitLit(unit):
            return unit
        case ex.Unary(op, operand):
            return f"{op}{describe(operand)}"
        case ex.Binary(op, left, right) | ex.Compare(op, left, right) | ex.Logical(op, left, right):
            return f"({describe(left)} {op} {describe(right)})"
        case ex.Not(operand):
            return f"(NOT {describe(operand)})"
        case ex.Between(operand, low, high):
            return f"({describe(operand)} BETWEEN {describe(low)} AND {describe(high)})"
        case ex.In(operand, options):
            return f"({describe(operand)} IN ({_list(options)}))"
        case ex.Like(operand, pattern, escape):
            tail = f" ESCAPE {ident.string_literal(escape)}" if escape else ""
            return f"({describe(operand)} LIKE {describe(pattern)}{tail})"
        case ex.IsNull(operand, negated):
            return f"({describe(operand)} IS {'NOT ' if negated else ''}NULL)"
        case ex.Case():
            return _case(node)
        case ex.Cast(operand, type_):
            return f"CAST({describe(operand)} AS {type_})"
        case ex.Call(name, args, star):
            return f"{ident.quote(name)}({'*' if star else _list(args)})"
        case ex.Lambda(params, body):
            head = params[0] if len(params) == 1 else f"({', '.join(params)})"
            return f"{head} => {describe(body)}"
        case ex.Subscript(base, index):
            return f"{describe(base)}[{describe(index)}]"
        case ex.Deref(base, field):
            return f"{describe(base)}->{ident.quote(field)}"
        case ex.ArrayExpr(items):
            return f"ARRAY[{_list(items)}]"
        case ex.MapExpr(entries):
            return f"MAP({', '.join(f'{describe(k)}:={describe(v)}' for k, v in entries)})"
        case ex.StructExpr(fields):
            inner = (f"{ident.quote(name)}:={describe(value)}" for name, value in fields)
            return f"STRUCT({', '.join(inner)})"
        case ex.Variable(name):
            return f"${{{name}}}"


def _case(node: ex.Case) -> str:
    parts = ["CASE"]
    if node.operand is not None:
        parts.append(describe(node.operand))
    parts += [f"WHEN {describe(w.condition)} THEN {describe(w.result)}" for w in node.whens]
    if node.otherwise is not None:
        parts.append(f"ELSE {describe(node.otherwise)}")
    return f"({' '.join(parts)} END)"
