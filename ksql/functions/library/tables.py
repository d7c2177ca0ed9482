"""Table functions: one row in, several rows out."""

from __future__ import annotations

from typing import Any

from ksql.core.types import NULL, Array, SqlType
from ksql.functions.build import Rule, family
from ksql.functions.spec import Table
from ksql.java import EvaluationError

CUBE_LIMIT = 20


class CubeTooLarge(EvaluationError):
    """A cube of too many columns: the rows double with each."""

    def __init__(self, size: int) -> None:
        super().__init__(f"CUBE_EXPLODE takes at most {CUBE_LIMIT} columns, not {size}")


def explode(values: list[Any] | None) -> list[Any]:
    """Return one row per element."""
    return values or []


def cube(values: list[Any] | None) -> list[Any]:
    """Return every choice of the columns, with NULL for those left out, each row once."""
    if values is None:
        return []
    size = len(values)
    if size > CUBE_LIMIT:
        raise CubeTooLarge(size)
    present = [1 << (size - 1 - i) if value is not None else 0 for i, value in enumerate(values)]
    can_stay = sum(present)
    return [
        [value if mask & bit else None for value, bit in zip(values, present, strict=True)]
        for mask in range(1 << size)
        if not mask & ~can_stay
    ]


def _item(types: tuple[SqlType, ...]) -> SqlType:
    return types[0].item if isinstance(types[0], Array) else NULL


TABLES = family(
    "TABLE",
    {
        "explode": (
            "One row per element of the array.",
            Table(("ARRAY<DECIMAL> input",), Rule("DECIMAL", _item), explode),
            Table(("ARRAY<T> list",), "T", explode),
        ),
        "cube_explode": (
            "One row per combination of the array's elements, with NULL for those left out.",
            Table(("ARRAY<T> columns",), "ARRAY<T>", cube),
        ),
    },
)
