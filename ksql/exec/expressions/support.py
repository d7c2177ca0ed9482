"""Functions that generated code calls, where the language has more than a Python operator."""

from __future__ import annotations

from typing import Any

from ksql.exec.expressions.errors import NullOperand


def element(array: list[Any] | None, index: int | None) -> Any:
    """Return an element by its place from 1, or from the end if negative; NULL if there is none.

    Raises: NullOperand for a NULL index.
    """
    if array is None:
        return None
    if index is None:
        raise NullOperand
    if index == 0 or abs(index) > len(array):
        return None
    return array[index - 1 if index > 0 else index]
