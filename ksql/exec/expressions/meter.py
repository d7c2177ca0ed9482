"""A bound for what the functions of one row compute together.

Each result is bounded by itself, but an expression may have hundreds of them. Some double their
argument (``TO_JSON_STRING`` of a text, ``ENCODE`` in HEX). Expressions of few such calls are
bounded by that; in all others, and in INSERT VALUES, the results are counted.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from ksql.core.types import model
from ksql.java import LONGEST_RESULT, EvaluationError
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ksql.core.types import SqlType
    from ksql.sql.binder import Bound

FEW: Final = 4
"""Calls: so many results of ``LONGEST_RESULT`` fit into memory, and what doubles so often does."""
_SMALL: Final = 1_000
_SIZED: Final = (str, bytes, list, dict)


class SumTooLong(EvaluationError):
    """The functions of a row, or of an INSERT, have computed more than a record could hold."""

    def __init__(self) -> None:
        super().__init__(
            f"the results of the expression's functions are longer than {LONGEST_RESULT} together"
        )


class _Row(threading.local):
    """Characters and items that the row's functions may still give; ``held``: of a statement."""

    left = LONGEST_RESULT
    held = False


_row = _Row()


def begin() -> None:
    """Begin a row, unless it is counted with its statement."""
    if not _row.held:
        _row.left = LONGEST_RESULT


@contextlib.contextmanager
def statement() -> Iterator[None]:
    """Count all that is evaluated inside together."""
    _row.left, _row.held = LONGEST_RESULT, True
    try:
        yield
    finally:
        _row.held = False


def counted(value: Any) -> Any:
    """Return the value, counted.

    Raises: SumTooLong.
    """
    if isinstance(value, _SIZED) and len(value) > _SMALL:
        _row.left -= len(value)
        if _row.left < 0:
            raise SumTooLong
    return value


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives, counted; none is called where too much was computed already.

    Raises: SumTooLong, and what the function raises.
    """
    if _row.left < 0:
        raise SumTooLong
    return counted(function(*args))


def walked(function: Callable[..., Any], *args: Any) -> Any:
    """Do as ``called`` for a function that calls a lambda for each item; these are counted, too.

    Raises: SumTooLong, and what the function raises.
    """
    _row.left -= sum(len(arg) for arg in args if isinstance(arg, list | dict))
    return called(function, *args)


def is_large(type_: SqlType) -> bool:
    """Return whether values of the type have a length."""
    if isinstance(type_, model.Array | model.Map | model.Struct):
        return True
    return type_ in (model.STRING, model.BYTES)


def is_counted(node: Bound) -> bool:
    """Return whether a node computes values that may be larger than its parts."""
    match node:
        case b.Call(type=type_) | b.Arith(type=type_):
            return is_large(type_) or _works_long(node)
        case b.Cast(operand, type_):
            return type_ == model.STRING and is_large(b.type_of(operand))
        case _:
            return False


def _works_long(node: Bound) -> bool:
    return isinstance(node, b.Call) and any(is_large(b.type_of(arg)) for arg in node.args)


def are_many(expressions: Iterable[Bound]) -> bool:
    """Return whether expressions have more than few nodes that are counted, or one in a lambda."""
    count = 0
    for expression in expressions:
        for node in trees.nodes(expression):
            count += is_counted(node)
            if count > FEW or (isinstance(node, b.Lambda) and _is_long(node)):
                return True
    return False


def _is_long(node: b.Lambda) -> bool:
    """Return whether each step of a lambda may have many steps itself, or a large result."""
    return any(isinstance(part, b.Lambda) or is_counted(part) for part in trees.nodes(node.body))
