"""What the tests of Java's meaning share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ksql.java.regex import matcher
from ksql.java.regex.matcher import Budget


@contextmanager
def own_budget() -> Iterator[None]:
    """Have the block spend from a budget of its own."""
    before = matcher.current()
    matcher.use(Budget())
    try:
        yield
    finally:
        matcher.use(before)


def is_linear(regex) -> bool:
    """Whether an expression has a program that takes linear time."""
    return regex._linear is not None
