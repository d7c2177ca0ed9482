"""Prints bound expressions as text, for EXPLAIN and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import quote, string_literal
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.sql.binder.bound import Bound


def sql_of(expr: Bound) -> str:
    """Return the expression in SQL's notation; inserted coercions show as CAST."""
    match expr:
        case b.Column() | b.LambdaVar():
            return quote(expr.name)
        case b.Const():
            return _constant(expr.value)
        case b.Call():
            return show_call(expr.function, expr.args)
        case b.Arith() | b.Compare() | b.Logical():
            return f"({sql_of(expr.left)} {expr.op} {sql_of(expr.right)})"
        case b.Negate():
            return f"-{sql_of(expr.operand)}"
        case b.Not():
            return f"(NOT {sql_of(expr.operand)})"
        case b.IsNull():
            return f"({sql_of(expr.operand)} IS {'NOT ' if expr.negated else ''}NULL)"
        case b.In():
            return f"({sql_of(expr.operand)} IN ({_list(expr.options)}))"
        case b.Like():
            escape = f" ESCAPE '{expr.escape}'" if expr.escape else ""
            return f"({sql_of(expr.operand)} LIKE {sql_of(expr.pattern)}{escape})"
        case b.Case():
            whens = " ".join(f"WHEN {sql_of(c)} THEN {sql_of(r)}" for c, r in expr.whens)
            tail = f" ELSE {sql_of(expr.otherwise)}" if expr.otherwise is not None else ""
            return f"(CASE {whens}{tail} END)"
        case b.Cast():
            return f"CAST({sql_of(expr.operand)} AS {expr.type})"
        case b.Subscript():
            return f"{sql_of(expr.base)}[{sql_of(expr.index)}]"
        case b.Deref():
            return f"{sql_of(expr.base)}->{quote(expr.field)}"
        case b.MakeArray():
            return f"ARRAY[{_list(expr.items)}]"
        case b.MakeMap():
            return "MAP(" + ", ".join(f"{sql_of(k)} := {sql_of(v)}" for k, v in expr.entries) + ")"
        case b.MakeStruct():
            return "STRUCT(" + ", ".join(f"{quote(n)} := {sql_of(e)}" for n, e in expr.fields) + ")"
        case b.Let():
            return f"LET {quote(expr.name)} := {sql_of(expr.operand)} IN {sql_of(expr.body)}"
        case b.Lambda():
            return f"({', '.join(expr.params)}) => {sql_of(expr.body)}"


def show_call(function: str, args: Iterable[Bound], literals: Iterable[object] = ()) -> str:
    """Return a call in SQL's notation; ``literals`` are an aggregate's initial arguments."""
    return f"{function}({', '.join([*map(sql_of, args), *map(repr, literals)])})"


def _list(items: Iterable[Bound]) -> str:
    return ", ".join(map(sql_of, items))


def _constant(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return string_literal(value)
        case bool():
            return str(value).upper()
        case _:
            return str(value)
