"""Visits and transforms unbound expression trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.sql.syntax.expr import Expr

    Node = TypeVar("Node", bound=Expr)


_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if re.search(r"\b(Expr|When)\b", str(one.type)))
    for kind in get_args(ex.Expr)
}
"""The fields of each class that hold expressions, in the order of the text."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions directly below, in the order of the text."""
    return tuple(expressions(getattr(expr, name) for name in _FIELDS[type(expr)]))


def expressions(values: Iterable[Any]) -> Iterator[Expr]:
    """Yield the expressions in parts of a statement, each as a whole."""
    for value in values:
        if type(value) in _FIELDS:
            yield value
        elif isinstance(value, tuple):
            yield from expressions(value)
        elif is_dataclass(value):
            yield from expressions(getattr(value, field.name) for field in fields(value))


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


def with_children(expr: Expr, new: Iterable[Expr]) -> Expr:
    """Return the node with other expressions below it, given in the order of `children`."""
    left = iter(new)

    def filled(value: Any) -> Any:
        if type(value) in _FIELDS:
            return next(left)
        if isinstance(value, ex.When):
            return ex.When(next(left), next(left))
        return tuple(map(filled, value)) if isinstance(value, tuple) else value

    return replace(expr, **{name: filled(getattr(expr, name)) for name in _FIELDS[type(expr)]})
