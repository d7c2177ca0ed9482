"""Errors in a function that a user wrote."""

from __future__ import annotations

from ksql.java.errors import EvaluationError


class BadDeclaration(TypeError):
    """A function whose SQL signature cannot be made out."""


class WrongResult(EvaluationError):
    """A function returned a value that its declared type does not have."""

    def __init__(self, name: str, value: object, type_: object) -> None:
        super().__init__(f"{name} returned {value!r}, which is no {type_}")


class WrongState(EvaluationError):
    """An aggregate's state is no plain data: it could not be stored, or would come back changed."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"the state of {name} has a {kind}; states are made of None, bool, int, float, str, "
            "bytes, Decimal, list and dict"
        )
