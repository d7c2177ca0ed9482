"""Makes functions of a library table's rows, and types of results by the arguments' types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ksql.core.types import NULL, Decimal, SqlType, decimals
from ksql.functions.spec import (
    AggregateFactory,
    AggregateFunction,
    Function,
    Overload,
    Scalar,
    Table,
)

Entry = tuple[str | Overload, ...]
"""A description, then the overloads."""

Family = dict[str, Function]
"""Functions by their upper-case names."""

AUTHOR = "built-in"


def family(category: str, rows: Mapping[str, Entry]) -> Family:
    """Return the functions of a table: spelling -> (description, overload, ...).

    Raises: ValueError for a row without description or with overloads of several kinds.
    """
    functions = (_function(category, spelling, entry) for spelling, entry in rows.items())
    return {function.name: function for function in functions}


def _function(category: str, spelling: str, entry: Entry) -> Function:
    description, *rest = entry
    overloads = tuple(overload for overload in rest if not isinstance(overload, str))
    kinds = {kind_of(overload) for overload in overloads}
    if not isinstance(description, str) or len(kinds) != 1:
        raise ValueError(f"the row of {spelling} is not a description and overloads of one kind")
    return Function(
        spelling.upper(),
        kinds.pop(),
        category,
        description,
        overloads,
        author=AUTHOR,
        spelling=spelling,
    )


def kind_of(overload: Overload) -> Literal["SCALAR", "AGGREGATE", "TABLE"]:
    """Return the kind of function that the overload makes."""
    match overload:
        case Scalar():
            return "SCALAR"
        case AggregateFunction() | AggregateFactory():
            return "AGGREGATE"
        case Table():
            return "TABLE"


@dataclass(frozen=True, slots=True)
class Rule:
    """A computed result type; ``shown`` is what DESCRIBE FUNCTION prints for it."""

    shown: str
    of: Callable[[tuple[SqlType, ...]], SqlType]

    def __call__(self, args: tuple[SqlType, ...]) -> SqlType:
        """Return the result's type for arguments of these types."""
        return self.of(args)


def _widened(args: tuple[SqlType, ...]) -> SqlType:
    """Return the DECIMAL that holds all arguments: most whole digits, most decimals."""
    operands = [arg for arg in args if isinstance(arg, Decimal)]
    return functools.reduce(decimals.widen, operands) if operands else NULL


SAME = Rule("DECIMAL", lambda args: args[0])
WIDENED = Rule("DECIMAL", _widened)
