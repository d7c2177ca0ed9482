"""The types of arithmetic and comparisons, with the conversions that they imply.

Source: docs/sql/types.md#decimals.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Literal

from ksql.core.types import coerce, decimals, model, times
from ksql.core.types.model import BIGINT, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP
from ksql.sql.binder.bound import Arith, Bound, Compare, Const, Negate, type_of
from ksql.sql.binder.convert import convert

if TYPE_CHECKING:
    from ksql.core.types.decimals import Operator
    from ksql.core.types.model import SqlType

Comparison = Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
_EQUALITY = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_TIMES = (DATE, TIME, TIMESTAMP)


def arithmetic(op: Operator, left: Bound, right: Bound) -> Bound | None:
    """Return the operation on operands of a common type; None if the types have none."""
    a, b = type_of(left), type_of(right)
    if a == b == STRING and op == "+":
        return Arith(op, left, right, STRING)
    if not model.is_numeric(a) or not model.is_numeric(b):
        return None
    if DOUBLE in (a, b):
        return Arith(op, convert(left, DOUBLE), convert(right, DOUBLE), DOUBLE)
    if isinstance(a, model.Decimal) or isinstance(b, model.Decimal):
        da, db = decimals.as_decimal(a), decimals.as_decimal(b)
        if da is None or db is None:
            return None
        type_ = decimals.result_type(op, da, db)
        return Arith(op, convert(left, da), convert(right, db), type_)
    common = BIGINT if BIGINT in (a, b) else INTEGER
    return Arith(op, convert(left, common), convert(right, common), common)


def negate(operand: Bound) -> Bound | None:
    """Return the negated operand; None if it is not a number."""
    type_ = type_of(operand)
    return Negate(operand, type_) if model.is_numeric(type_) else None


def compare(op: Comparison, left: Bound, right: Bound) -> Bound | None:
    """Return the comparison of operands in Python; None if the types cannot be compared."""
    a, b = type_of(left), type_of(right)
    if model.is_numeric(a) and model.is_numeric(b):
        return _compare_numbers(op, left, right)
    if STRING in (a, b) and (a in _TIMES or b in _TIMES):
        return _compare_text_with_time(op, left, right)
    if {a, b} == {DATE, TIMESTAMP}:
        return Compare(op, convert(left, TIMESTAMP), convert(right, TIMESTAMP))
    if a == b and a in (STRING, model.BYTES, *_TIMES):
        return Compare(op, left, right)
    same_kind = type(a) is type(b) and (not isinstance(a, model.Primitive) or a == b)
    return Compare(op, left, right) if same_kind and op in _EQUALITY else None


def _compare_numbers(op: Comparison, left: Bound, right: Bound) -> Bound:
    """Compare numbers: INTEGER and BIGINT become DOUBLE next to a DOUBLE; a DECIMAL stays."""
    a, b = type_of(left), type_of(right)
    if DOUBLE not in (a, b):
        return Compare(op, left, right)
    return Compare(op, _as_double(left), _as_double(right))


def _as_double(expr: Bound) -> Bound:
    """Return a DOUBLE where that changes no comparison.

    Doubles are compared with decimals as the shortest text that stands for them. A decimal constant
    that is such a text itself may therefore be compared as a double.
    """
    type_ = type_of(expr)
    if type_ in (INTEGER, BIGINT):
        return convert(expr, DOUBLE)
    if isinstance(expr, Const) and isinstance(expr.value, decimal.Decimal):
        as_double = float(expr.value)
        if decimal.Decimal(repr(as_double)) == expr.value:
            return Const(as_double, DOUBLE)
    return expr


def _compare_text_with_time(op: Comparison, left: Bound, right: Bound) -> Bound:
    other = type_of(right) if type_of(left) == STRING else type_of(left)
    target = other if other != DATE or _is_plain_date(left, right) else TIMESTAMP
    return Compare(op, convert(left, target), convert(right, target))


def unreadable_time(left: Bound, right: Bound) -> tuple[str, SqlType, ValueError] | None:
    """Return the constant compared with a time that no time can be read from; type and reason."""
    for text, other in ((left, type_of(right)), (right, type_of(left))):
        if not isinstance(text, Const) or not isinstance(text.value, str) or other not in _TIMES:
            continue
        if other == DATE and _is_plain_date(left, right):
            continue
        try:
            coerce.caster(STRING, TIMESTAMP if other == DATE else other)(text.value)
        except ValueError as error:
            return text.value, other, error
    return None


def _is_plain_date(left: Bound, right: Bound) -> bool:
    """Return whether the text is a constant without a time.

    Then days are compared, else instants.
    """
    text = left if type_of(left) == STRING else right
    if not isinstance(text, Const) or text.value is None:
        return False
    try:
        times.parse_date(text.value)
    except ValueError:
        return False
    return True
