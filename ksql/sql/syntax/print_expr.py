"""Expressions as canonical SQL."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

from ksql.core.ident import quote, string_literal
from ksql.core.types.text import type_text
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.lexer import SINGULAR_UNITS, UNIT_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core.types.model import SqlType
    from ksql.sql.syntax.expr import Expr

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
