"""What the tests of Java's meaning share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ksql.java.regex import budget
from ksql.java.regex.budget import Budget


@contextmanager
def own_budget() -> Iterator[None]:
    """Have the block spend from a budget of its own."""
    before = budget.current()
    budget.use(Budget())
    try:
        yield
    finally:
        budget.use(before)


def is_linear(regex) -> bool:
    """Whether an expression has a program that takes linear time."""
    return regex._linear is not None
