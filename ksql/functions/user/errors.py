"""Errors in a function that a user wrote."""

from __future__ import annotations

from ksql.java.errors import EvaluationError


class BadDeclaration(TypeError):
    """A function whose SQL signature cannot be made out."""


class WrongResult(EvaluationError):
    """A function returned a value that its declared type does not have."""

    def __init__(self, name: str, value: object, type_: object) -> None:
        super().__init__(f"{name} returned {value!r}, which is no {type_}")
