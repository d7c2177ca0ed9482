"""The overloads of a function by their places."""

from __future__ import annotations

from typing import Any

from ksql.functions.resolve import signature


def nth(function: Any, number: int) -> str:
    """The key of the overload at that place."""
    return signature(function.overloads[number])
