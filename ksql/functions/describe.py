"""The facts about a function that SHOW FUNCTIONS and DESCRIBE FUNCTION list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.functions.resolve import parameters
from ksql.functions.signature import parse_type

if TYPE_CHECKING:
    from ksql.functions.spec import Function


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a variation."""

    name: str
    type: str
    variadic: bool

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'...' if self.variadic else ''}".lstrip()


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to call a function."""

    function: str
    arguments: tuple[Argument, ...]
    returns: str
    description: str

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


def describe(function: Function) -> list[Variation]:
    """Return all ways to call the function, in the order of its overloads.

    Source: docs/sql/managing.md#describe.
    """
    variations = []
    for overload in function.overloads:
        arguments = tuple(
            Argument(param.name, str(param.pattern), param.variadic)
            for param in parameters(overload)
        )
        if isinstance(overload.returns, str):
            returns = str(parse_type(overload.returns))
        else:
            returns = getattr(overload.returns, "shown", "")
        variations.append(
            Variation(function.name, arguments, returns, overload.doc or function.description)
        )
    return variations
