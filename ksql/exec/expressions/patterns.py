"""The functions whose arguments are patterns: a program with one has a budget of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.sql.binder import bound as b
from ksql.sql.binder import trees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.sql.binder.bound import Bound

FUNCTIONS: Final = frozenset(
    {
        *("REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "REGEXP_REPLACE", "REGEXP_SPLIT_TO_ARRAY"),
        *("PARSE_DATE", "PARSE_TIME", "PARSE_TIMESTAMP", "STRINGTODATE", "STRINGTOTIMESTAMP"),
    }
)
"""Those that match with backtracking where it cannot be avoided; LIKE never does."""


def are_in(expressions: Iterable[Bound]) -> bool:
    """Return whether one of them is called."""
    return any(
        isinstance(node, b.Call) and node.function in FUNCTIONS
        for expression in expressions
        for node in trees.nodes(expression)
    )
