"""The remedy for operands whose types do not go together: mostly a CAST, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.analysis.describe import describe
from ksql.syntax import expr as ex
from ksql.types import coerce, model

if TYPE_CHECKING:
    from ksql.types.model import SqlType

Operand = tuple[ex.Expr, "SqlType"]

_MOST_SHOWN: Final = 40
_ADDING: Final = {
    model.TIMESTAMP: "TIMESTAMPADD and TIMESTAMPSUB",
    model.DATE: "DATEADD and DATESUB",
    model.TIME: "TIMEADD and TIMESUB",
}
_FROM_NUMBER: Final = {
    model.TIMESTAMP: ("FROM_UNIXTIME", "milliseconds since 1970"),
    model.DATE: ("FROM_DAYS", "days since 1970"),
}


def of_arithmetic(op: str, left: Operand, right: Operand) -> str:
    """Return what to write instead of ``left op right``; empty if nothing is known."""
    types = left[1], right[1]
    for type_, functions in _ADDING.items():
        if type_ in types:
            return f"{functions} compute with a {type_}."
    if types == (model.STRING, model.STRING):
        return "CAST(.. AS DOUBLE) makes numbers of texts; || joins them."
    text, number = _text_and(left, right)
    if text is None or number is None or not model.is_numeric(number[1]):
        return _of_parts(left, right)
    as_number = _as_number(text, number[1])
    return f"{as_number} || joins texts: {_cast(number[0], 'STRING')}." if op == "+" else as_number


def of_comparison(left: Operand, right: Operand) -> str:
    """Return what to write instead of a comparison; empty if nothing is known."""
    for (_, time), (node, type_) in ((left, right), (right, left)):
        if time in _FROM_NUMBER and model.is_numeric(type_):
            function, unit = _FROM_NUMBER[time]
            return f"{function}({_shown(node)}) makes a {time} of {unit}."
    text, other = _text_and(left, right)
    if text is None or other is None:
        return _of_parts(left, right)
    if model.is_numeric(other[1]):
        return _as_number(text, other[1])
    if other[1] == model.BOOLEAN:
        return f"Write TRUE or FALSE without quotes, or {_cast(other[0], 'STRING')}."
    return _of_parts(left, right)


def _text_and(left: Operand, right: Operand) -> tuple[Operand | None, Operand | None]:
    """Return the operand that is a text, and the other one."""
    for text, other in ((left, right), (right, left)):
        if text[1] == model.STRING != other[1]:
            return text, other
    return None, None


def _as_number(text: Operand, target: SqlType) -> str:
    node, _ = text
    if isinstance(node, ex.StringLit) and _is_number(node.value):
        return f"Write {node.value.strip()} without quotes."
    return f"{_cast(node, str(target))} makes it a number."


def _of_parts(*operands: Operand) -> str:
    for node, type_ in operands:
        if isinstance(type_, model.Array):
            return f"An element of the array: {_shown(node)}[1]."
        if isinstance(type_, model.Map):
            return f"A value of the map: {_shown(node)}['key']."
        if isinstance(type_, model.Struct) and type_.fields:
            return f"A field of the struct: {_shown(node)}->{type_.fields[0].name}."
    return ""


def _is_number(text: str) -> bool:
    try:
        coerce.parse_number(text)
    except (ValueError, ArithmeticError):
        return False
    return True


def _cast(node: ex.Expr, type_: str) -> str:
    return f"CAST({_shown(node)} AS {type_})"


def _shown(node: ex.Expr) -> str:
    text = describe(node)
    return text if len(text) <= _MOST_SHOWN else ".."
