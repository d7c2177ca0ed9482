"""Errors of a function on the values of a row."""

from __future__ import annotations


class EvaluationError(ValueError):
    """A function cannot work with the values of a row: the expression is NULL and logged."""


LONGEST_RESULT = 10_000_000
"""Characters or items: no record can hold more, and a worker's memory must not depend on a row."""


class ResultTooLong(EvaluationError):
    """A value of a row asks for a result that no record could hold."""

    def __init__(self, name: str, length: int) -> None:
        super().__init__(f"{name} would give a result of length {length}")
