"""Expressions that cannot be NULL, as far as that is known before they run."""

from __future__ import annotations

from ksql.exec.expressions.emit import is_value
from ksql.sql.binder import bound as b


def nullable(node: b.Bound) -> bool:
    """Return whether the value may be NULL; arithmetic on a NULL raises instead."""
    match node:
        case b.Const(value):
            return value is None
        case b.Compare() | b.Logical() | b.Not() | b.IsNull() | b.In() | b.Like():
            return False
        case b.Arith() | b.Negate() | b.MakeArray() | b.MakeMap() | b.MakeStruct():
            return False
        case b.Cast(operand, _, implicit):
            return not implicit or nullable(operand)
        case b.Let(_, _, body):
            return nullable(body)
        case _:
            return True


def doubtful(node: b.Bound, code: str) -> bool:
    """Return whether the code of the expression must be tested for None."""
    return nullable(node) and not is_value(code.strip("()"))
