"""The name of an overload in a stored plan: its signature, whatever its place in a list.

A number, which plans of format 1 have, means the place among the overloads as they are now.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ksql.functions.errors import OverloadGone
from ksql.functions.signature import parse_param
from ksql.functions.spec import AggregateFactory

if TYPE_CHECKING:
    from ksql.functions.spec import Function, Overload

OverloadKey = str | int
"""An overload's signature; a number in a plan of format 1."""


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
        described = f"number {key}" if isinstance(key, int) else key
        raise OverloadGone(function.name, described, map(signature, function.overloads))
    return overload


def find_overload(function: Function, key: OverloadKey) -> Overload | None:
    """Return the overload that a plan means, if it is still there."""
    if isinstance(key, int):
        return function.overloads[key] if 0 <= key < len(function.overloads) else None
    return next((overload for overload in function.overloads if signature(overload) == key), None)
