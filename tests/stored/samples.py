"""Samples of every stored class, made from the types of its fields.

The samples of a class show, of each field, every word, member, class and emptiness that its type
allows. So a class, a field or a word that is new has no frozen sample, and a test tells.
"""

from __future__ import annotations

import decimal
import enum
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NewType

from ksql.control.engine.changes import Change
from ksql.control.log import record
from ksql.core.structs import Form, Structs, hints_of
from ksql.sql.catalog.model import PersistentQuery
from ksql.sql.plan import codec
from ksql.sql.plan.nodes import QueryPlan

ROOTS: tuple[Any, ...] = (QueryPlan, Change, PersistentQuery)
"""What is stored; all else is stored as a part of these."""
CODECS: tuple[Structs, ...] = (codec.STRUCTS, record.STRUCTS)
_SCALARS: dict[Any, list[Any]] = {
    type(None): [None],
    bool: [False, True],
    int: [7, 0, -1, 2**63],
    str: ["x", "", 'ü `"\\\n\t'],
}
_RUN_TIME: list[Any] = [
    None,
    True,
    7,
    2**70,
    1.5,
    -0.0,
    float("inf"),
    "x",
    b"\x00\xff",
    decimal.Decimal("1.50"),
    [1, ["a", None]],
    {"a": 1, "b": {"c": [2]}},
    {},
]


def classes() -> Iterator[type]:
    """The dataclasses and enums that are stored, found by the types of the fields."""
    seen: set[type] = set()
    open_ = list(ROOTS)
    while open_:
        hint = open_.pop()
        open_ += typing.get_args(hint)
        if not isinstance(hint, type) or hint in seen:
            continue
        seen.add(hint)
        if is_dataclass(hint):
            open_ += _hints(hint).values()
        if is_dataclass(hint) or issubclass(hint, enum.Enum):
            yield hint


def forms() -> dict[type, tuple[Form, Structs]]:
    """The declared forms by class, each with a codec that has it."""
    return {form.cls: (form, structs) for structs in CODECS for form in structs.forms}


def stored_keys(form: Form) -> list[str]:
    """The keys of an object as it is stored; an enum's word stands under one of its own."""
    return ["v"] if issubclass(form.cls, enum.Enum) else list(form.keys)


def samples(cls: Any, *, only: str | None = None) -> list[Any]:
    """As many objects as show every alternative of every field, or of that one only."""
    if issubclass(cls, enum.Enum):
        return list(cls)
    choices = {name: alternatives(hint) for name, hint in _hints(cls).items()}
    if only is not None:
        choices = {k: given if k == only else given[:1] for k, given in choices.items()}
    length = max(map(len, choices.values()))
    return [
        cls(**{name: given[n if n < len(given) else 0] for name, given in choices.items()})
        for n in range(length)
    ]


def alternatives(hint: Any) -> list[Any]:
    """Values of a type, one for each that a stored form tells apart."""
    if isinstance(hint, NewType):
        return alternatives(hint.__supertype__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return _RUN_TIME
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is typing.Literal:
        return list(args)
    if origin in (typing.Union, types.UnionType):
        return [value for arg in args for value in alternatives(arg)]
    if origin is tuple and args[-1] is Ellipsis:
        return [(), tuple(alternatives(args[0]))]
    if origin is tuple:
        return [tuple(map(_first, args))]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return list(hint)
    if is_dataclass(hint):
        return [_smallest(hint)]
    raise TypeError(f"no samples of {hint!r}")


def _smallest(cls: Any) -> Any:
    """One object of a class; unions that lead back to it begin with a class that does not."""
    return cls(**{name: _first(hint) for name, hint in _hints(cls).items()})


def _first(hint: Any) -> Any:
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _first(args[0])
    if typing.get_origin(hint) is tuple and args[-1] is Ellipsis:
        return (_first(args[0]),)
    if typing.get_origin(hint) is tuple:
        return tuple(map(_first, args))
    return _smallest(hint) if is_dataclass(hint) else alternatives(hint)[0]


def _hints(cls: Any) -> dict[str, Any]:
    hints = hints_of(cls)
    return {field.name: hints[field.name] for field in fields(cls) if field.init}
