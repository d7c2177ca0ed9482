"""Binds arithmetic, comparisons and CASE: common type, conversions, type of the result.

Source: docs/sql/types.md#decimals.

Source: docs/sql/expressions.md#case.
"""

from __future__ import annotations

import decimal
from bisect import bisect_left
from typing import TYPE_CHECKING, Literal

from ksql.core.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    coerce,
    decimals,
    model,
    times,
)
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Arith, Bound, Compare, Const, Negate, type_of
from ksql.sql.binder.errors import type_name
from ksql.sql.binder.unify import convert, wider_number
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.core.types import Operator, SqlType
    from ksql.sql.binder.infer import Binder


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


_INVALID = "Invalid Case expression. "


def bind_case(binder: Binder, node: ex.Case) -> Bound:
    """Return a searched CASE; of a simple one the operand is evaluated once."""
    operand = None if node.operand is None else binder.bind(node.operand)
    held, name = (None, "") if operand is None else binder.once(operand)
    conditions = [_condition(binder, node, held, when.condition) for when in node.whens]
    results = [binder.bind(when.result) for when in node.whens]
    otherwise = None if node.otherwise is None else binder.bind(node.otherwise)
    type_ = _common(binder, node, [*results, *([] if otherwise is None else [otherwise])])
    whens = zip(conditions, (convert(result, type_) for result in results), strict=True)
    last = None if otherwise is None else convert(otherwise, type_)
    case = b.Case(tuple(whens), last, type_)
    return case if operand is None else binder.let(name, operand, case)


def _condition(binder: Binder, node: ex.Case, held: Bound | None, when: ex.Expr) -> Bound:
    condition = binder.bind(when)
    if held is not None and node.operand is not None:
        return binder.compared(ex.Compare("=", node.operand, when), held, condition)
    if type_of(condition) != model.BOOLEAN:
        raise binder.fail(
            "WHEN operand type should be boolean.\n"
            f"Type for '{binder.shown(when)}' is {type_name(type_of(condition))}"
        )
    return condition


def _common(binder: Binder, node: ex.Case, results: list[Bound]) -> model.SqlType:
    """Return the type that all results have; only literals may be converted to it."""
    typed = [(at, result) for at, result in enumerate(results) if type_of(result) != model.NULL]
    if not typed:
        raise binder.fail(f"{_INVALID}All case branches have NULL type")
    count = _agreeing([result for _, result in typed])
    before = _target([result for _, result in typed[:count]])
    if count == len(typed):
        return before
    at, odd = typed[count]
    both = model.is_numeric(before) and model.is_numeric(type_of(odd))
    hint = f"CAST(.. AS {wider_number(before, type_of(odd))}) gives them one type." if both else ""
    raise binder.fail(_mismatch(binder, node, at, before, type_of(odd)), hint=hint)


def _agreeing(results: list[Bound]) -> int:
    """Return how many results have one type, from the first one on; the next one is wrong.

    A CASE may have thousands of them.
    """
    if _agree(results):
        return len(results)
    counts = range(1, len(results))
    return bisect_left(counts, True, key=lambda count: not _agree(results[:count]))


def _agree(results: list[Bound]) -> bool:
    target = _target(results)
    return all(
        type_of(result) == target
        or (isinstance(result, Const) and _casts_without_loss(result, target))
        for result in results
    )


def _target(results: list[Bound]) -> model.SqlType:
    """Return the type of the first result that is no literal, else what the literals widen to."""
    free = next((result for result in results if not isinstance(result, Const)), None)
    return _of_literals(results) if free is None else type_of(free)


def _of_literals(literals: list[Bound]) -> model.SqlType:
    """Widen numbers to one type; what does not go with the others is refused by the caller."""
    target = type_of(literals[0])
    for literal in literals[1:]:
        type_ = type_of(literal)
        if model.is_numeric(target) and model.is_numeric(type_):
            target = wider_number(target, type_)
        elif coerce.can_coerce(target, type_):
            target = type_
    return target


def _mismatch(
    binder: Binder, node: ex.Case, index: int, target: model.SqlType, type_: model.SqlType
) -> str:
    if index == len(node.whens):
        return (
            f"{_INVALID}Type for the default clause should be the same as for 'THEN' clauses.\n"
            f"THEN type: {target}.\nDEFAULT type: {type_}."
        )
    when = node.whens[index]
    shown = f"WHEN {binder.shown(when.condition)} THEN {binder.shown(when.result)}"
    return (
        f"{_INVALID}Type for all 'THEN' clauses should be the same.\n"
        f"THEN expression '{shown}' has type: {type_}.\n"
        f"Previous THEN expression(s) type: {target}."
    )


def _casts_without_loss(literal: Const, target: model.SqlType) -> bool:
    if coerce.can_coerce(literal.type, target):
        return True
    if not isinstance(target, model.Decimal) or not model.is_numeric(literal.type):
        return False
    try:
        exact = coerce.caster(literal.type, target)(literal.value)
    except ArithmeticError:
        return False
    return bool(exact == literal.value)
