"""The values of INSERT VALUES: constant expressions, strictly brought to their columns' types.

Source: docs/sql/insert.md.
"""

from __future__ import annotations

from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any

from ksql.core.types import coerce, decimals, java_string, model
from ksql.exec.expressions.compile import compile_expr
from ksql.sql.binder import NO_COLUMNS, BadValue, Const, bind, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.core.types import SqlType
    from ksql.functions import Functions
    from ksql.sql.syntax import Expr


def constant_value(
    expr: Expr,
    target: SqlType,
    functions: Functions,
    settings: Mapping[str, Any],
    column: str = "",
) -> Any:
    """Return the value of an expression without columns, as a value of the type.

    Numbers are widened, decimals must fit exactly, texts become times and bytes, a struct loses the
    fields that the type lacks; nothing else is converted. ``column`` is named in errors.
    Raises: BadValue; whatever ``bind`` raises.
    """
    bound = bind(expr, NO_COLUMNS, functions)
    if isinstance(bound, Const):
        value = bound.value
    else:
        run = compile_expr((), bound, functions, settings, column, metered=True)
        value = run((), _refuse)
    try:
        return strict(value, type_of(bound), target)
    except (ValueError, ArithmeticError, TypeError) as error:
        shown = java_string(value, type_of(bound))
        raise BadValue(
            f"Expected type {target} for field `{column}` "
            f"but got {model.base_name(type_of(bound))}({shown})",
            detail="" if isinstance(error, TypeError | DecimalException) else str(error),
        ) from error


def _refuse(_context: str, message: str, _row: Any) -> None:
    raise BadValue(message)


def strict(value: Any, source: SqlType, target: SqlType) -> Any:
    """Return the value with the target's type, if no information is lost or guessed.

    Raises: TypeError for types that do not convert; ValueError or ArithmeticError for the value.
    """
    if value is None:
        return None
    if isinstance(target, model.Decimal):
        if decimals.as_decimal(source) is None:
            raise coerce.CastNotSupported(source, target)
        return decimals.fitter(target, exact=True)(Decimal(value))
    match source, target:
        case model.Array(a), model.Array(b):
            return [strict(item, a, b) for item in value]
        case model.Map(k1, v1), model.Map(k2, v2):
            return {strict(k, k1, k2): strict(v, v1, v2) for k, v in value.items()}
        case model.Struct(), model.Struct():
            return _strict_struct(value, source, target)
        case _ if coerce.can_coerce(source, target):
            return coerce.caster(source, target)(value)
        case _:
            raise coerce.CastNotSupported(source, target)


def _strict_struct(value: dict[str, Any], source: model.Struct, target: model.Struct) -> Any:
    """Convert a struct: fields not given are NULL, those that the target lacks are left out."""
    given = {field.name: field.type for field in source.fields}
    return {
        field.name: strict(value[field.name], given[field.name], field.type)
        if field.name in given
        else None
        for field in target.fields
    }
