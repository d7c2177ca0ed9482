"""Makes functions of the rows of a library table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ksql.functions.spec import (
    AggregateFactory,
    AggregateFunction,
    Function,
    Overload,
    Scalar,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

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
