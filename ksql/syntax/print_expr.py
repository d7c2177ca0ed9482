"""Expressions as canonical SQL."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

from ksql.base.ident import quote, string_literal
from ksql.syntax import expr as ex
from ksql.syntax.lexer import SINGULAR_UNITS, UNIT_FUNCTIONS
from ksql.types.text import type_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.syntax.expr import Expr

_CONSTRUCTORS = frozenset(("ARRAY", "MAP", "STRUCT"))
_LOOSE = (ex.Unary, ex.Lambda)


def expression(expr: Expr) -> str:  # noqa: C901  one arm for each node
    """The expression in SQL, with brackets around every operator."""
    match expr:
        case ex.Ref():
            return quote(expr.name) if expr.source is None else qualified(expr.source, expr.name)
        case (
            ex.NullLit()
            | ex.BoolLit()
            | ex.IntLit()
            | ex.DecimalLit()
            | ex.DoubleLit()
            | ex.StringLit()
            | ex.Variable()
        ):
            return literal(expr)
        case ex.UnitLit():
            return expr.unit
        case ex.Unary():
            return expr.op + _operand(expr)
        case ex.Binary() | ex.Compare() | ex.Logical():
            return f"({expression(expr.left)} {expr.op} {expression(expr.right)})"
        case ex.Not():
            return f"(NOT {expression(expr.operand)})"
        case ex.Between():
            low, high = expression(expr.low), expression(expr.high)
            return f"({expression(expr.operand)} BETWEEN {low} AND {high})"
        case ex.In():
            return f"({expression(expr.operand)} IN ({comma(expr.options)}))"
        case ex.Like():
            escape = "" if expr.escape is None else f" ESCAPE {string_literal(expr.escape)}"
            return f"({expression(expr.operand)} LIKE {expression(expr.pattern)}{escape})"
        case ex.IsNull():
            return f"({expression(expr.operand)} IS {'NOT ' if expr.negated else ''}NULL)"
        case ex.Case():
            return _case(expr)
        case ex.Cast():
            return f"CAST({expression(expr.operand)} AS {type_text(expr.type)})"
        case ex.Call():
            return _call(expr)
        case ex.Lambda():
            return f"({', '.join(map(quote, expr.params))}) => {expression(expr.body)}"
        case ex.Subscript():
            return f"{base(expr.base)}[{expression(expr.index)}]"
        case ex.Deref():
            return f"{base(expr.base)}->{quote(expr.field)}"
        case ex.ArrayExpr():
            return f"ARRAY[{comma(expr.items)}]"
        case ex.MapExpr():
            entries = (f"{expression(key)}:={expression(value)}" for key, value in expr.entries)
            return f"MAP({', '.join(entries)})"
        case ex.StructExpr():
            fields = (f"{quote(name)}:={expression(value)}" for name, value in expr.fields)
            return f"STRUCT({', '.join(fields)})"


def literal(value: ex.Literal | ex.Variable) -> str:
    """A literal as it is written."""
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
    """``source.name``, each quoted only where it must be."""
    if name[:1].isdigit() and quote(name) == name:
        return f"{quote(source)}.`{name}`"  # after a point, digits open a number
    return f"{quote(source)}.{quote(name)}"


def comma(exprs: Iterable[Expr]) -> str:
    """The expressions with commas between them."""
    return ", ".join(map(expression, exprs))


def _operand(expr: ex.Unary) -> str:
    """Print the operand of a sign: two minuses open a comment, and `-5` is a literal."""
    text = expression(expr.operand)
    if text[0].isdigit():
        return f"({text})"
    return " " + text if text[0] == "-" else text


def base(expr: Expr) -> str:
    """An expression where it is indexed or dereferenced."""
    if isinstance(expr, _LOOSE):
        return f"({expression(expr)})"
    if isinstance(expr, ex.Ref) and expr.source is None and expr.name in _CONSTRUCTORS:
        return f"`{expr.name}`"
    return expression(expr)


def _case(expr: ex.Case) -> str:
    parts = ["CASE"]
    if expr.operand is not None:
        parts.append(expression(expr.operand))
    parts += [f"WHEN {expression(w.condition)} THEN {expression(w.result)}" for w in expr.whens]
    if expr.otherwise is not None:
        parts.append(f"ELSE {expression(expr.otherwise)}")
    return f"({' '.join(parts)} END)"


def _call(expr: ex.Call) -> str:
    name = f"`{expr.name}`" if expr.name in _CONSTRUCTORS else quote(expr.name)
    args = "*" if expr.star else comma(expr.args)
    first = expr.args[0] if expr.args else None
    if expr.name in UNIT_FUNCTIONS and isinstance(first, ex.Ref) and first.name in SINGULAR_UNITS:
        args = args.replace(first.name, f"`{first.name}`", 1)
    return f"{name}({args})"
