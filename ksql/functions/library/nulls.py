"""Scalar functions around NULL: COALESCE, IFNULL, NULLIF, GREATEST, LEAST; also AS_VALUE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ksql.core.types import NULL, SqlType
from ksql.functions.build import WIDENED, family
from ksql.functions.spec import Scalar
from ksql.java import identity, is_plain, order

_ORDERED = ("INT", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")


def coalesce(*values: Any) -> Any:
    """Return the first value that is not NULL."""
    for value in values:
        if value is not None:
            return value
    return None


def _null_if(types: tuple[SqlType, ...]) -> Callable[[Any, Any], Any]:
    if is_plain(types[0]):
        return lambda first, second: None if first == second else first
    of = identity(types[0])
    return lambda first, second: None if of(first) == of(second) else first


def _extreme(choose: Callable[..., Any]) -> Callable[[tuple[SqlType, ...]], Callable[..., Any]]:
    def typed(types: tuple[SqlType, ...]) -> Callable[..., Any]:
        by = order(next((type_ for type_ in types if type_ != NULL), NULL))
        return lambda *values: choose((v for v in values if v is not None), key=by, default=None)

    return typed


def _ordered(choose: Callable[..., Any]) -> tuple[Scalar, ...]:
    """Return one overload per type that has an order."""
    typed = _extreme(choose)
    plain = tuple(
        Scalar((f"{kind} val", f"{kind}... vals"), kind, typed=typed, nulls="pass")
        for kind in _ORDERED
    )
    return (
        *plain,
        Scalar(("DECIMAL val", "DECIMAL... vals"), WIDENED, typed=typed, nulls="pass"),
    )


NULLS = family(
    "CONDITIONAL",
    {
        "COALESCE": (
            "The first argument that is not NULL.",
            Scalar(("T first", "T... others"), "T", coalesce, nulls="pass"),
        ),
        "IFNULL": (
            "The first argument, or the second if the first is NULL.",
            Scalar(("T expression", "T altValue"), "T", coalesce, nulls="pass"),
        ),
        "NULLIF": (
            "NULL if the arguments are equal, else the first one.",
            Scalar(("T expression1", "T expression2"), "T", typed=_null_if, nulls="pass"),
        ),
        "greatest": ("The largest argument; NULLs do not count.", *_ordered(max)),
        "least": ("The smallest argument; NULLs do not count.", *_ordered(min)),
    },
)
OTHERS = family(
    "OTHER",
    {
        "AS_VALUE": (
            "The argument itself: it copies a key column into the value.",
            Scalar(("T keyColumn",), "T", lambda value: value, "({0})", "pass"),
        ),
    },
)
