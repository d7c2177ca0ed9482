"""Expressions as error messages and logs show them: fully bracketed, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.ident import quote
from ksql.core.types import model
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.print_expr import Writer, literal

if TYPE_CHECKING:
    from ksql.core.errors import Span


def position_text(span: Span) -> str:
    """Return ``Line: L, Col: C: `` of a span, nothing for a node that was not read from a text."""
    return "" if span is ex.NOWHERE else f"Line: {span.line}, Col: {span.column}: "


def type_name(type_: model.SqlType) -> str:
    """Return the type; that of an untyped NULL in small letters."""
    return "null" if type_ == model.NULL else str(type_)


class _Speller(Writer):
    """Writes expressions as they were written, spelled out."""

    def column(self, ref: ex.Ref) -> str:
        prefix = f"{quote(ref.source)}." if ref.source else ""
        return prefix + quote(ref.name)

    def literal(self, value: ex.Literal | ex.Variable) -> str:
        return f"{value.value:f}" if isinstance(value, ex.DecimalLit) else literal(value)

    def operand(self, text: str) -> str:
        return text

    def type(self, type_: model.SqlType) -> str:
        return str(type_)

    def call(self, expr: ex.Call, args: str) -> str:
        return f"{quote(expr.name)}({args})"

    def parameters(self, names: tuple[str, ...]) -> str:
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def base(self, expr: ex.Expr) -> str:
        return self.write(expr)


describe = _Speller().write
"""The expression as it was written, spelled out."""
