"""Visits and transforms unbound expression trees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.sql.syntax.expr import Expr

    Node = TypeVar("Node", bound=Expr)


def children(expr: Expr) -> tuple[Expr, ...]:  # noqa: C901  one arm for each shape of node
    """Return the expressions directly below, in the order of the text."""
    match expr:
        case ex.Unary() | ex.Not() | ex.IsNull() | ex.Cast():
            return (expr.operand,)
        case ex.Binary() | ex.Compare() | ex.Logical():
            return expr.left, expr.right
        case ex.Between():
            return expr.operand, expr.low, expr.high
        case ex.In():
            return expr.operand, *expr.options
        case ex.Like():
            return expr.operand, expr.pattern
        case ex.Case():
            branches = tuple(e for when in expr.whens for e in (when.condition, when.result))
            return tuple(e for e in (expr.operand, *branches, expr.otherwise) if e is not None)
        case ex.Call():
            return expr.args
        case ex.Lambda():
            return (expr.body,)
        case ex.Subscript():
            return expr.base, expr.index
        case ex.Deref():
            return (expr.base,)
        case ex.ArrayExpr():
            return expr.items
        case ex.MapExpr():
            return tuple(e for entry in expr.entries for e in entry)
        case ex.StructExpr():
            return tuple(value for _, value in expr.fields)
        case (
            ex.Ref()
            | ex.NullLit()
            | ex.BoolLit()
            | ex.IntLit()
            | ex.DecimalLit()
            | ex.DoubleLit()
            | ex.StringLit()
            | ex.UnitLit()
            | ex.Variable()
        ):
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Return the expression and everything below it, top down, in the order of the text."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def collect(expr: Expr, kind: type[Node]) -> list[Node]:
    """Return all nodes of a class, in the order of the text.

    Example: of ``COUNT(a) + b``, the nodes of class Ref are ``a`` and ``b``.
    """
    return [node for node in walk(expr) if isinstance(node, kind)]


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with every node changed, from the bottom up.

    ``change`` is called once for each node, after the nodes below it have been changed; it returns
    the node itself to leave it. Parts without a change are shared with the original.

    Example: with ``change`` turning ``a`` into ``b``, ``f(a) + 1`` becomes ``f(b) + 1``.
    """
    old = children(expr)
    new = tuple(transform(child, change) for child in old)
    if any(a is not b for a, b in zip(old, new, strict=True)):
        expr = with_children(expr, new)
    return change(expr)


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:  # noqa: C901  as above
    """Return the node with other expressions below it, given in the order of `children`."""
    match expr:
        case ex.Unary() | ex.Not() | ex.IsNull() | ex.Cast():
            return replace(expr, operand=new[0])
        case ex.Binary() | ex.Compare() | ex.Logical():
            return replace(expr, left=new[0], right=new[1])
        case ex.Between():
            return replace(expr, operand=new[0], low=new[1], high=new[2])
        case ex.In():
            return replace(expr, operand=new[0], options=new[1:])
        case ex.Like():
            return replace(expr, operand=new[0], pattern=new[1])
        case ex.Case():
            return _case(expr, list(new))
        case ex.Call():
            return replace(expr, args=new)
        case ex.Lambda():
            return replace(expr, body=new[0])
        case ex.Subscript():
            return replace(expr, base=new[0], index=new[1])
        case ex.Deref():
            return replace(expr, base=new[0])
        case ex.ArrayExpr():
            return replace(expr, items=new)
        case ex.MapExpr():
            return replace(expr, entries=tuple(zip(new[::2], new[1::2], strict=True)))
        case ex.StructExpr():
            names = (name for name, _ in expr.fields)
            return replace(expr, fields=tuple(zip(names, new, strict=True)))
        case _:
            return expr


def _case(expr: ex.Case, parts: list[Expr]) -> ex.Case:
    operand = None if expr.operand is None else parts.pop(0)
    otherwise = None if expr.otherwise is None else parts.pop()
    whens = tuple(map(ex.When, parts[::2], parts[1::2]))
    return replace(expr, operand=operand, whens=whens, otherwise=otherwise)
