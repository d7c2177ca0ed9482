"""Plans of format 1, which number overloads, with signatures instead: so they can be compared."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ksql.analysis import bound
from ksql.functions.identity import find_overload, signature
from ksql.plan.nodes import Fold, TableCall

if TYPE_CHECKING:
    from ksql.functions.registry import Functions

T = TypeVar("T")


def signed(value: T, functions: Functions) -> T:
    """Return the plan, or a part of it, with the signatures that its numbers mean now.

    What is not there any more keeps its number: it cannot be run either.
    """
    signed_: T = _signed(value, functions)
    return signed_


@cache
def _fields(cls: Any) -> tuple[str, ...]:
    known = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return tuple(field.name for field in known)


def _signed(value: Any, functions: Functions) -> Any:
    if isinstance(value, tuple):
        members = tuple(_signed(item, functions) for item in value)
        return members if any(x is not y for x, y in zip(members, value, strict=True)) else value
    changes = {}
    for name in _fields(value.__class__):
        before = getattr(value, name)
        after = _signed(before, functions)
        if after is not before:
            changes[name] = after
    if isinstance(value, bound.Call | Fold | TableCall) and isinstance(value.overload, int):
        function = functions.find(value.function)
        overload = function and find_overload(function, value.overload)
        if overload:
            changes["overload"] = signature(overload)
    return dataclasses.replace(value, **changes) if changes else value
