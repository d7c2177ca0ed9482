"""The rules by which a result's type follows from the types of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from ksql.core.types import decimals
from ksql.core.types.model import NULL, Decimal, SqlType


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
