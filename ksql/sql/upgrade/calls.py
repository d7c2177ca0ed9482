"""The calls in a part of a plan, without those below it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ksql.functions.identity import find_overload
from ksql.functions.spec import Scalar
from ksql.sql.binder import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.functions.registry import Functions


def calls(value: Any) -> Iterator[bound.Call]:
    """Return the scalar calls in a node's fields, or in an expression."""
    if isinstance(value, tuple):
        for item in value:
            yield from calls(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, bound.Call):
            yield value
        for field in dataclasses.fields(value):
            if field.metadata.get("rule") != "child":
                yield from calls(getattr(value, field.name))


def is_volatile(value: Any, functions: Functions) -> bool:
    """Return whether the same input may give another result, as with RANDOM()."""
    return any(_volatile(call, functions) for call in calls(value))


def _volatile(call: bound.Call, functions: Functions) -> bool:
    function = functions.find(call.function)
    if function is None:
        return False
    overload = find_overload(function, call.overload)
    return isinstance(overload, Scalar) and overload.volatile
