"""How the type of a result follows from the types of the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.types.model import NULL, Decimal, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Rule:
    """A computed result type; ``shown`` is what DESCRIBE FUNCTION prints for it."""

    shown: str
    of: Callable[[tuple[SqlType, ...]], SqlType]

    def __call__(self, args: tuple[SqlType, ...]) -> SqlType:
        return self.of(args)


def _widened(args: tuple[SqlType, ...]) -> SqlType:
    """The DECIMAL that holds all arguments: most whole digits, most decimals."""
    decimals = [arg for arg in args if isinstance(arg, Decimal)]
    if not decimals:
        return NULL
    scale = max(arg.scale for arg in decimals)
    return Decimal(max(arg.precision - arg.scale for arg in decimals) + scale, scale)


def _whole(args: tuple[SqlType, ...]) -> SqlType:
    """The DECIMAL without decimals: DECIMAL(p - s, 0)."""
    (first, *_) = args
    return Decimal(first.precision - first.scale, 0) if isinstance(first, Decimal) else NULL


SAME = Rule("DECIMAL", lambda args: args[0])
WIDENED = Rule("DECIMAL", _widened)
WHOLE = Rule("DECIMAL", _whole)
