"""What is known of an expression before it runs: whether it can be NULL."""

from __future__ import annotations

from ksql.analysis import bound as b


def nullable(node: b.Bound) -> bool:
    """Whether the value may be NULL; arithmetic on a NULL raises instead."""
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
