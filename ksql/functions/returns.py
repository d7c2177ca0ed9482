"""How the type of a result follows from the types of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ksql.types.model import NULL, Decimal, SqlType


@dataclass(frozen=True, slots=True)
class Rule:
    """A computed result type; ``shown`` is what DESCRIBE FUNCTION prints for it."""

    shown: str
    of: Callable[[tuple[SqlType, ...]], SqlType]

    def __call__(self, args: tuple[SqlType, ...]) -> SqlType:
        """The result's type for arguments of these types."""
        return self.of(args)


def _widened(args: tuple[SqlType, ...]) -> SqlType:
    """The DECIMAL that holds all arguments: most whole digits, most decimals."""
    decimals = [arg for arg in args if isinstance(arg, Decimal)]
    if not decimals:
        return NULL
    scale = max(arg.scale for arg in decimals)
    return Decimal(max(arg.precision - arg.scale for arg in decimals) + scale, scale)


SAME = Rule("DECIMAL", lambda args: args[0])
WIDENED = Rule("DECIMAL", _widened)
