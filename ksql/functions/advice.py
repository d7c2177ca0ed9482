"""The conversions for a call whose arguments have the wrong types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ksql.core.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Decimal,
    SqlType,
    is_numeric,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class _Conversion(NamedTuple):
    """How arguments of some types become another one."""

    sources: tuple[SqlType, ...]
    target: SqlType
    written: str


def advice(args: Sequence[object], fits: Callable[[Sequence[SqlType]], bool]) -> str:
    """Return the conversion with which the call would be right; empty if none is known.

    ``fits`` says whether the function takes arguments of those types.

    Example: ``CAST(.. AS BIGINT)`` for ``COALESCE(a BIGINT, 0)``.
    """
    types = [arg for arg in args if isinstance(arg, SqlType)]
    if len(types) < len(args):
        return ""
    for sources, target, written in _conversions(types):
        places = [index for index, type_ in enumerate(types) if type_ in sources]
        for chosen in (places, *([place] for place in places)):
            if places and fits([target if i in chosen else t for i, t in enumerate(types)]):
                return f"{written} converts {_listed(types[i] for i in chosen)}."
    return ""


def _conversions(types: Sequence[SqlType]) -> Iterator[_Conversion]:
    numbers = sorted(filter(is_numeric, types), key=_width, reverse=True)
    for target in numbers[:1]:
        yield _cast(tuple(type_ for type_ in numbers if type_ != target), target)
    yield _Conversion((BIGINT, INTEGER), TIMESTAMP, "FROM_UNIXTIME(..)")
    yield _Conversion((TIMESTAMP,), BIGINT, "UNIX_TIMESTAMP(..)")
    yield _Conversion((INTEGER,), DATE, "FROM_DAYS(..)")
    yield _cast((DATE,), TIMESTAMP)
    yield _cast((TIMESTAMP,), DATE)
    yield _cast((TIMESTAMP,), TIME)
    yield _cast((*numbers, BOOLEAN, DATE, TIME, TIMESTAMP), STRING)
    yield _cast((STRING,), DOUBLE)
    yield _cast((STRING,), BIGINT)


def _cast(sources: tuple[SqlType, ...], target: SqlType) -> _Conversion:
    return _Conversion(sources, target, f"CAST(.. AS {target})")


def _width(type_: SqlType) -> tuple[int, int]:
    if isinstance(type_, Decimal):
        return 2, type_.precision - type_.scale
    return (INTEGER, BIGINT, None, DOUBLE).index(type_), 0


def _listed(types: Iterator[SqlType]) -> str:
    return " and ".join(dict.fromkeys(map(str, types)))
