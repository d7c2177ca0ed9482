"""Comparisons, IN and LIKE as Python code. With a NULL they are false, LIKE excepted: it raises.

Source: docs/sql/expressions.md#comparisons.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ksql.core.types import decimals, model
from ksql.exec.expressions import like
from ksql.exec.expressions.emit import is_atom
from ksql.exec.expressions.nulls import doubtful, nullable
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import type_of

if TYPE_CHECKING:
    from ksql.exec.expressions.generate import Generator

_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def compare_code(gen: Generator, node: b.Compare) -> str:
    """Generate the code of a comparison."""
    types = (type_of(node.left), type_of(node.right))
    mixed = model.DOUBLE in types and any(isinstance(type_, model.Decimal) for type_ in types)
    if node.op in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        return _distinct(gen, node, mixed)
    if node.op == "=" and not mixed:
        return _equal(gen, node)
    left, right, tests = _operands(gen, node)
    if mixed:
        left, right = _exact(gen, node.left, left), _exact(gen, node.right, right)
    if node.op == "<>" and types[0] == model.DOUBLE and not mixed:
        tests.append(f"({left} < {right} or {left} > {right})")
    else:
        tests.append(f"{left} {_PYTHON[node.op]} {right}")
    return f"({' and '.join(tests)})"


def _operands(gen: Generator, node: b.Compare) -> tuple[str, str, list[str]]:
    """Return both sides, repeatable, and the tests that they are not NULL."""
    left, right = gen.value(node.left), gen.value(node.right)
    tests: list[str] = []
    if nullable(node.left) and not is_atom(left) and is_atom(right):
        name = gen.code.fresh()
        tests.append(f"({name} := {left}) is not None")
        left = name
    else:
        left = gen.code.atom(left)
        tests += [f"{left} is not None"] * doubtful(node.left, left)
    right = gen.code.atom(right)
    tests += [f"{right} is not None"] * doubtful(node.right, right)
    return left, right, tests


def _equal(gen: Generator, node: b.Compare) -> str:
    """Return the code of ``=``: Python's ``==`` with one None is false already."""
    left, right = gen.value(node.left), gen.value(node.right)
    if doubtful(node.left, left) and doubtful(node.right, right):
        left = gen.code.atom(left)
        return f"({left} == {right} and {left} is not None)"
    return f"({left} == {right})"


def _distinct(gen: Generator, node: b.Compare, mixed: bool) -> str:
    left, right = gen.atom(node.left), gen.atom(node.right)
    test = f"{left} != {right}"
    ordered = ""
    if mixed:
        ordered = f"{_exact(gen, node.left, left)} != {_exact(gen, node.right, right)}"
    elif type_of(node.left) == model.DOUBLE:
        ordered = f"{left} < {right} or {left} > {right}"
    if ordered:
        sides = ((node.left, left), (node.right, right))
        nulls = [f"{code} is None" for side, code in sides if doubtful(side, code)]
        test = f"({test} if {' or '.join(nulls)} else {ordered})" if nulls else ordered
    return f"({test})" if node.op == "IS DISTINCT FROM" else f"(not ({test}))"


def _exact(gen: Generator, node: b.Bound, code: str) -> str:
    """Return a double as the decimal that it prints as."""
    if type_of(node) != model.DOUBLE:
        return code
    return f"{gen.code.library(decimals.exact_double)}({code})"


def in_code(gen: Generator, node: b.In) -> str:
    """Generate the code of ``operand IN (..)``; constants are looked up together."""
    operand = gen.atom(node.operand)
    known = [o.value for o in node.options if isinstance(o, b.Const)]
    tests = []
    if known and all(isinstance(value, Hashable) for value in known):
        tests.append(f"{operand} in {gen.code.named(frozenset(known), 'set')}")
    tests += [
        f"{operand} == {gen.atom(option)}"
        for option in node.options
        if not isinstance(option, b.Const)
    ]
    if not tests:
        return "False"
    either = " or ".join(tests)
    if doubtful(node.operand, operand) and any(nullable(option) for option in node.options):
        return f"({operand} is not None and ({either}))"
    return f"({either})"


def like_code(gen: Generator, node: b.Like) -> str:
    """Generate the code of LIKE; a constant pattern is compiled once, a bad one fails each time."""
    text = gen.value(node.operand)
    constant = node.pattern.value if isinstance(node.pattern, b.Const) else None
    if constant is not None and like.is_like_pattern(constant, node.escape):
        test = like.like_test(constant, node.escape)
        return f"{gen.code.named(test, 'like')}({text})"
    args = (text, gen.value(node.pattern), gen.code.constant(node.escape))
    return f"{gen.code.library(like.like)}({', '.join(args)})"
