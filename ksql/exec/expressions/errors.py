"""The failure of an expression on a row: it is NULL, and an entry of the processing log."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ksql.core import StatementError, excerpt
from ksql.sql.binder import sql_of

if TYPE_CHECKING:
    from ksql.sql.binder import Bound

Log = Callable[[str, str, Any], None]
"""``log(context, message, row)``; never raises."""

LONGEST_CAUSE = 2_000
"""Characters: a message may show values of a row, and each row may have one."""

Failed = Callable[[Log, int, Exception, Any], None]


class NullOperand(ValueError):
    """A NULL where the operation needs a value."""

    def __init__(self) -> None:
        super().__init__("a NULL operand")


class TooDeep(StatementError):
    """An expression that is nested too deeply to be compiled."""

    def __init__(self) -> None:
        super().__init__(
            "The expression is nested too deeply to be compiled",
            hint="Split it over several statements.",
        )


def null_boolean() -> bool:
    """Raise the error of a NULL where a condition is needed.

    Raises: NullOperand.
    """
    raise NullOperand


def reporter(context: str, nodes: Sequence[Bound]) -> Failed:
    """Return the function that compiled code calls when one of these expressions has failed."""

    def failed(log: Log, index: int, error: Exception, row: Any) -> None:
        log(context, f"Error computing expression {sql_of(nodes[index])}: {cause(error)}", row)

    return failed


def cause(error: Exception) -> str:
    """Return the text of an error; those that Python words in its own way are reworded."""
    text = str(error)
    match error:
        case TypeError() | AttributeError() if "NoneType" in text:
            return str(NullOperand())
        case ZeroDivisionError():
            return "/ by zero"
        case decimal.InvalidOperation():
            return "the decimal operation has no result of this type"
        case decimal.Inexact():
            return "Rounding necessary"
        case _:
            return excerpt(text, LONGEST_CAUSE) or type(error).__name__
