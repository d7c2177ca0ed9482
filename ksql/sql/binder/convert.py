"""Bound expressions brought to another type; constants at once, all else by a Cast node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.types import coerce, model
from ksql.sql.binder.bound import Bound, Cast, Const, type_of

if TYPE_CHECKING:
    from ksql.core.types.model import SqlType

_COLLECTIONS = (model.Array, model.Map, model.Struct)


def convert(expr: Bound, target: SqlType) -> Bound:
    """Return the expression as the binder converts it by itself; a CAST must be able to do it.

    A constant that cannot be converted is left to fail when it is evaluated.
    """
    source = type_of(expr)
    if source == target:
        return expr
    if isinstance(expr, Const) and not isinstance(target, _COLLECTIONS):
        if expr.value is None:
            return Const(None, target)
        try:
            return Const(coerce.caster(source, target)(expr.value), target)
        except (ValueError, ArithmeticError):
            return Cast(expr, target, implicit=True)
    return Cast(expr, target, implicit=True)


def is_null(expr: Bound) -> bool:
    """Return whether it is a NULL without a type."""
    return isinstance(expr, Const) and expr.type == model.NULL
