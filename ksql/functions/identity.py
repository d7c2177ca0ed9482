"""The name of an overload in a stored plan: its signature, whatever its place in a list."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ksql.functions.errors import OverloadGone
from ksql.functions.signature import parse_param
from ksql.functions.spec import AggregateFactory

if TYPE_CHECKING:
    from ksql.functions.spec import Function, Overload

OverloadKey = str
"""An overload's signature."""


@cache
def signature(overload: Overload) -> str:
    """Return the types of parameters, of constants and of the result.

    Example:
        ``(STRING..., BIGINT; INT) -> ARRAY<T>``; a result that a rule decides is left out.
    """
    columns = ", ".join(map(_shown, overload.params))
    constants = overload.literals if isinstance(overload, AggregateFactory) else ()
    taken = "; ".join((columns, *([", ".join(map(_shown, constants))] if constants else ())))
    returns = overload.returns
    given = f" -> {parse_param(returns).pattern}" if isinstance(returns, str) else ""
    return f"({taken}){given}"


def _shown(text: str) -> str:
    param = parse_param(text)
    return f"{param.pattern}{'...' if param.variadic else ''}"


def overload_of(function: Function, key: OverloadKey) -> Overload:
    """Return the overload that a plan means.

    Raises: OverloadGone.
    """
    overload = find_overload(function, key)
    if overload is None:
        raise OverloadGone(function.name, key, map(signature, function.overloads))
    return overload


def find_overload(function: Function, key: OverloadKey) -> Overload | None:
    """Return the overload that a plan means, if it is still there."""
    return next((overload for overload in function.overloads if signature(overload) == key), None)
