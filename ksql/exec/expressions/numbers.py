"""Arithmetic as Python code: Java's integers, IEEE doubles, exact decimals, joined texts.

A NULL operand makes Python's operators raise, which is what the language wants.
Source: docs/sql/types.md#decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.types import decimals, ints, model
from ksql.exec.expressions.emit import doubtful
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.exec.expressions.generate import Generator

_LIMITS: dict[model.SqlType, tuple[int, int, Callable[[int], int]]] = {
    model.INTEGER: (ints.INT_MIN, ints.INT_MAX, ints.wrap32),
    model.BIGINT: (ints.LONG_MIN, ints.LONG_MAX, ints.wrap64),
}


def arithmetic_code(gen: Generator, node: b.Arith) -> str:
    """Generate the code of ``left op right``."""
    match node.type:
        case model.Decimal():
            name = gen.code.named(decimals.operation(node.op, node.type), "decimal")
            return f"{name}({gen.value(node.left)}, {gen.value(node.right)})"
        case model.DOUBLE:
            return _double(gen, node)
        case model.STRING:
            return f"({_text(gen, node.left)} + {_text(gen, node.right)})"
        case _:
            return _integer(gen, node)


def negate_code(gen: Generator, node: b.Negate) -> str:
    """Generate the code of ``-operand``."""
    operand = gen.value(node.operand)
    match node.type:
        case model.DOUBLE:
            return f"(-{operand})"
        case model.Decimal(precision, scale):
            zero = b.Const(decimals.unit(scale) * 0, node.type)
            minus = decimals.operation("-", model.Decimal(precision, scale))
            return f"{gen.code.named(minus, 'decimal')}({gen.value(zero)}, {operand})"
        case _:
            return _wrapped(gen, f"-{operand}", node.type)


def _wrapped(gen: Generator, code: str, type_: model.SqlType) -> str:
    """Return the integer, brought back into its range if it left it."""
    low, high, wrap = _LIMITS[type_]
    name, again = gen.code.fresh(), gen.code.library(wrap)
    return f"({name} if {low} <= ({name} := {code}) <= {high} else {again}({name}))"


def _integer(gen: Generator, node: b.Arith) -> str:
    left = gen.value(node.left)
    if node.op in ("/", "%"):
        return _division(gen, node, left)
    return _wrapped(gen, f"{left} {node.op} {gen.value(node.right)}", node.type)


def _division(gen: Generator, node: b.Arith, left: str) -> str:
    """Return code that divides toward zero; only the smallest number by -1 overflows."""
    if isinstance(node.right, b.Const) and (by := node.right.value) and by > 0:
        op = "//" if node.op == "/" else "%"
        atom = gen.code.atom(left)
        times = gen.code.constant(by)
        return f"({atom} {op} {times} if {atom} >= 0 else -(-{atom} {op} {times}))"
    divide = ints.divide if node.op == "/" else ints.remainder
    code = f"{gen.code.library(divide)}({left}, {gen.value(node.right)})"
    return _wrapped(gen, code, node.type) if node.op == "/" else code


def _double(gen: Generator, node: b.Arith) -> str:
    left, right = gen.value(node.left), gen.value(node.right)
    match node.op:
        case "/":
            if isinstance(node.right, b.Const) and node.right.value:
                return f"({left} / {right})"
            return f"{gen.code.library(ints.divide_double)}({left}, {right})"
        case "%":
            return f"{gen.code.library(ints.remainder_double)}({left}, {right})"
        case op:
            return f"({left} {op} {right})"


def _text(gen: Generator, node: b.Bound) -> str:
    """Return a text to be joined: NULL prints as ``null``."""
    code = gen.value(node)
    if not doubtful(node, code):
        return code
    atom = gen.code.atom(code)
    return f"({atom} if {atom} is not None else 'null')"
