"""Visits and transforms bound expression trees."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, get_args

from ksql.core import ServerError
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ksql.sql.binder.bound import Bound

NODES: tuple[type, ...] = get_args(b.Bound)


_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(f.name for f in dataclasses.fields(cls) if f.name not in ("type", "value"))
    for cls in NODES
}


def _parts(value: Any) -> Iterator[Bound]:
    if isinstance(value, b.Bound):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _parts(item)


def nodes(expr: Bound) -> Iterator[Bound]:
    """Yield the expression and everything below it, top down."""
    yield expr
    for name in _FIELDS[type(expr)]:
        for part in _parts(getattr(expr, name)):
            yield from nodes(part)


def columns(expr: Bound) -> Iterator[b.Column]:
    """Return the columns that the expression reads."""
    return (node for node in nodes(expr) if isinstance(node, b.Column))


def rewrite(expr: Bound, replace: Callable[[Bound], Bound | None]) -> Bound:
    """Replace sub-expressions, the outermost first.

    What ``replace`` returns is not looked into again.
    """
    replaced = replace(expr)
    if replaced is not None:
        return replaced
    changes = {}
    for name in _FIELDS[type(expr)]:
        old = getattr(expr, name)
        new = _rewritten(old, replace)
        if new is not old:
            changes[name] = new
    return dataclasses.replace(expr, **changes) if changes else expr


def over_columns(expr: Bound, columns: Mapping[str, Bound]) -> Bound:
    """Return the expression over what its columns are computed from.

    Raises: ServerError for a column that is not there.
    """

    def substitute(node: Bound) -> Bound | None:
        if not isinstance(node, b.Column):
            return None
        if node.name not in columns:
            raise ServerError(f"the plan refers to a missing column {node.name}")
        return columns[node.name]

    return rewrite(expr, substitute)


def _rewritten(value: Any, replace: Callable[[Bound], Bound | None]) -> Any:
    if isinstance(value, b.Bound):
        return rewrite(value, replace)
    if isinstance(value, tuple):
        new = tuple(_rewritten(item, replace) for item in value)
        return new if any(x is not y for x, y in zip(new, value, strict=True)) else value
    return value
