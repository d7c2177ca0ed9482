"""CASE: the types of its branches.

Source: docs/sql/expressions.md#case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis.bound import Bound, Const, type_of
from ksql.analysis.convert import convert
from ksql.analysis.describe import type_name
from ksql.analysis.unify import wider_number
from ksql.syntax import expr as ex
from ksql.types import coerce, model

if TYPE_CHECKING:
    from ksql.analysis.infer import Binder

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
    typed = [result for result in results if type_of(result) != model.NULL]
    if not typed:
        raise binder.fail(f"{_INVALID}All case branches have NULL type")
    free = next((result for result in typed if not isinstance(result, Const)), None)
    target = _of_literals(typed) if free is None else type_of(free)
    for index, result in enumerate(results):
        type_ = type_of(result)
        if type_ in (target, model.NULL) or (isinstance(result, Const) and _bends(result, target)):
            continue
        raise binder.fail(_mismatch(binder, node, index, target, type_))
    return target


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


def _bends(literal: Const, target: model.SqlType) -> bool:
    if coerce.can_coerce(literal.type, target):
        return True
    if not isinstance(target, model.Decimal) or not model.is_numeric(literal.type):
        return False
    try:
        exact = coerce.caster(literal.type, target)(literal.value)
    except ArithmeticError:
        return False
    return bool(exact == literal.value)
