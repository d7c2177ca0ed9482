"""Checks what user functions return, so that a wrong value stops here and not in a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal as Dec
from typing import TYPE_CHECKING, Any

from ksql.core.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, decimals, model
from ksql.functions.user.annotations import WrongResult

if TYPE_CHECKING:
    from ksql.core.types import SqlType

Check = Callable[[Any], Any]

_INTEGERS: dict[SqlType, tuple[int, int]] = {
    model.INTEGER: (INT_MIN, INT_MAX),
    model.BIGINT: (LONG_MIN, LONG_MAX),
    model.DATE: (INT_MIN, INT_MAX),
    model.TIME: (0, 86_399_999),
    model.TIMESTAMP: (LONG_MIN, LONG_MAX),
}
_CLASSES: dict[SqlType, type] = {model.BOOLEAN: bool, model.STRING: str, model.BYTES: bytes}


def checker(name: str, type_: SqlType) -> Check:
    """Return a function that brings a value to the engine's form, or raises WrongResult."""
    check = _checker(name, type_)
    return lambda value: None if value is None else check(value)


def _checker(name: str, type_: SqlType) -> Check:
    match type_:
        case model.Array(item):
            return _array(name, type_, checker(name, item))
        case model.Map(_, item):
            return _map(name, type_, checker(name, item))
        case model.Struct(fields):
            return _struct(name, type_, {f.name: checker(name, f.type) for f in fields})
        case model.Decimal():
            return _decimal(name, type_)
        case _ if type_ in _INTEGERS:
            return _integer(name, type_, *_INTEGERS[type_])
        case _ if type_ == model.DOUBLE:
            return _double(name)
        case _:
            return _instance(name, type_, _CLASSES.get(type_, object))


def _instance(name: str, type_: SqlType, class_: type) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, class_):
            raise WrongResult(name, value, type_)
        return value

    return check


def _integer(name: str, type_: SqlType, low: int, high: int) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise WrongResult(name, value, type_)
        return value

    return check


def _double(name: str) -> Check:
    def check(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise WrongResult(name, value, model.DOUBLE)
        return float(value)

    return check


def _decimal(name: str, type_: model.Decimal) -> Check:
    fit = decimals.fitter(type_, exact=False)

    def check(value: Any) -> Dec:
        if not isinstance(value, int | Dec) or isinstance(value, bool):
            raise WrongResult(name, value, type_)
        return fit(Dec(value))

    return check


def _array(name: str, type_: SqlType, item: Check) -> Check:
    def check(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise WrongResult(name, value, type_)
        return [item(part) for part in value]

    return check


def _map(name: str, type_: SqlType, item: Check) -> Check:
    def check(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise WrongResult(name, value, type_)
        return {key: item(part) for key, part in value.items()}

    return check


def _struct(name: str, type_: SqlType, fields: dict[str, Check]) -> Check:
    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not fields.keys() >= value.keys():
            raise WrongResult(name, value, type_)
        return {field: of(value.get(field)) for field, of in fields.items()}

    return check
