"""Errors in the call of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import KsqlError, StatementError, UnknownName
from ksql.java import LONGEST_RESULT, EvaluationError, ResultTooLong

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core import Span


class UnknownFunction(UnknownName):
    """No function has that name."""

    def __init__(self, name: str, near: tuple[str, ...] = (), *, span: Span | None = None) -> None:
        super().__init__(f"Can't find any functions with the name '{name}'", near, span=span)


class NoSuchOverload(StatementError):
    """The function exists but not for these arguments."""

    def __init__(
        self,
        name: str,
        args: str,
        alternatives: Iterable[str],
        *,
        hint: str = "",
        span: Span | None = None,
    ) -> None:
        lines = [
            f"Function '{name}' does not accept parameters {args}.",
            "Valid alternatives are:",
            *alternatives,
        ]
        super().__init__("\n".join(lines), hint=hint, span=span)


class OverloadGone(KsqlError):
    """A plan's overload is not there any more: no other may take its place."""

    code = 50000

    def __init__(self, name: str, signature: str, alternatives: Iterable[str]) -> None:
        super().__init__(
            f"the query uses {name} {signature}, which is not there any more",
            detail=f"{name} has: {', '.join(alternatives)}",
            hint="Bring that function back and restart, or replace or terminate the query.",
        )


class AmbiguousCall(StatementError):
    """Several overloads fit the arguments equally well."""

    def __init__(
        self, name: str, args: str, alternatives: Iterable[str], *, span: Span | None = None
    ) -> None:
        lines = [
            f"Function '{name}' cannot be resolved due to ambiguous method parameters {args}.",
            "Use CAST() to explicitly type your parameters to one of the supported signatures:",
            *alternatives,
        ]
        super().__init__("\n".join(lines), span=span)


class BadConstant(StatementError):
    """A constant argument that the function cannot work with."""


class ResultBudget:
    """The space left for the parts of one result."""

    __slots__ = ("_name", "_size")

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0

    def take(self, value: object) -> None:
        """Count a part.

        Raises: ResultTooLong.
        """
        if isinstance(value, str | bytes | list | dict):
            self._size += len(value)
            if self._size > LONGEST_RESULT:
                raise ResultTooLong(self._name, self._size)

    def only(self, value: object) -> None:
        """Look at the whole of a result that is made again in each step."""
        self._size = 0
        self.take(value)


class NullPrimitive(EvaluationError):
    """NULL was given to a parameter that cannot hold it."""

    def __init__(self, name: str, position: int) -> None:
        super().__init__(f"argument {position} of {name} must not be NULL")
