"""SQL types from a user function's annotations, conversion of its values, and its errors.

A function annotated with ``datetime.date`` gets dates; without annotation it gets what the engine
holds: epoch days.
"""

from __future__ import annotations

import datetime as dt
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union

from ksql.java import EvaluationError

Convert = Callable[[Any], Any]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the value of a TIMESTAMP has no zone
_EPOCH_DAY = _EPOCH.date()


def _from_millis(millis: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=millis)


def _to_millis(moment: dt.datetime) -> int:
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def _from_time(millis: int) -> dt.time:
    return _from_millis(millis).time()


def _to_time(clock: dt.time) -> int:
    return _to_millis(dt.datetime.combine(_EPOCH_DAY, clock.replace(tzinfo=None)))


@dataclass(frozen=True, slots=True)
class Hint:
    """The meaning of an annotation: SQL type, whether None may come, conversion of values."""

    sql: str
    nullable: bool = False
    inward: Convert | None = None
    outward: Convert | None = None


_SIMPLE: dict[Any, Hint] = {
    str: Hint("STRING"),
    int: Hint("BIGINT"),
    bool: Hint("BOOLEAN"),
    float: Hint("DOUBLE"),
    bytes: Hint("BYTES"),
    Decimal: Hint("DECIMAL"),
    Any: Hint("ANY"),
    dt.date: Hint(
        "DATE",
        inward=lambda days: _EPOCH_DAY + dt.timedelta(days=days),
        outward=lambda day: (day - _EPOCH_DAY).days,
    ),
    dt.time: Hint("TIME", inward=_from_time, outward=_to_time),
    dt.datetime: Hint("TIMESTAMP", inward=_from_millis, outward=_to_millis),
}


def hint_of(annotation: Any) -> Hint:
    """Return the meaning of an annotation.

    ``int`` is BIGINT; ``Annotated[int, "INT"]`` says otherwise. A TypedDict is a STRUCT, a TypeVar
    with a name of one capital letter a type variable.
    Raises: BadDeclaration.
    """
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if isinstance(annotation, TypeVar):
        return Hint(annotation.__name__)
    if typing.is_typeddict(annotation):
        return _struct(annotation)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner = hint_of(args[0])
        text = next((extra for extra in args[1:] if isinstance(extra, str)), inner.sql)
        return Hint(text, inner.nullable, inner.inward, inner.outward)
    if origin in (Union, UnionType):
        return _optional(annotation, args)
    if origin is list and len(args) == 1:
        return _list(hint_of(args[0]))
    if origin is dict and len(args) == 2:
        return _dict(hint_of(args[0]), hint_of(args[1]))
    raise BadDeclaration(f"the annotation {annotation!r} has no SQL type")


def _optional(annotation: Any, args: tuple[Any, ...]) -> Hint:
    others = [arg for arg in args if arg is not NoneType]
    if len(others) != 1 or len(others) == len(args):
        raise BadDeclaration(f"the annotation {annotation!r} has no SQL type")
    inner = hint_of(others[0])
    return Hint(inner.sql, True, inner.inward, inner.outward)


def _elementwise(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values: [None if value is None else convert(value) for value in values]


def _values(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda entries: {
        key: None if value is None else convert(value) for key, value in entries.items()
    }


def _list(item: Hint) -> Hint:
    return Hint(f"ARRAY<{item.sql}>", False, _elementwise(item.inward), _elementwise(item.outward))


def _dict(key: Hint, value: Hint) -> Hint:
    sql = f"MAP<{key.sql}, {value.sql}>"
    return Hint(sql, False, _values(value.inward), _values(value.outward))


def _struct(annotation: Any) -> Hint:
    hints = {
        name: hint_of(field)
        for name, field in typing.get_type_hints(annotation, include_extras=True).items()
    }
    fields = ", ".join(f"`{name}` {hint.sql}" for name, hint in hints.items())
    inward = {name: hint.inward for name, hint in hints.items() if hint.inward}
    outward = {name: hint.outward for name, hint in hints.items() if hint.outward}
    return Hint(f"STRUCT<{fields}>", False, _fields(inward), _fields(outward))


def _fields(converts: dict[str, Convert]) -> Convert | None:
    if not converts:
        return None

    def convert(row: dict[str, Any]) -> dict[str, Any]:
        changed = {
            name: one(row[name]) for name, one in converts.items() if row.get(name) is not None
        }
        return {**row, **changed}

    return convert


def element_of(annotation: Any) -> Any:
    """Return the type of a table function's rows: the element of its list or iterator.

    Raises: BadDeclaration.
    """
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, Iterator, Iterable) and len(args) == 1:
        return args[0]
    raise BadDeclaration("a table function returns list[..] or Iterator[..]")


class BadDeclaration(TypeError):
    """A function whose SQL signature cannot be made out."""


class WrongResult(EvaluationError):
    """A function returned a value that its declared type does not have."""

    def __init__(self, name: str, value: object, type_: object) -> None:
        super().__init__(f"{name} returned {value!r}, which is no {type_}")


class WrongState(EvaluationError):
    """An aggregate's state is no plain data: it could not be stored, or would come back changed."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"the state of {name} has a {kind}; states are made of None, bool, int, float, str, "
            "bytes, Decimal, list and dict"
        )
