"""Checks that a value has the type that a field declares, when stored data is read.

Containers are looked into, dataclasses are not. Stored data is built from the inside out, so the
fields of an inner dataclass were checked when that was made.
"""

from __future__ import annotations

import decimal
import types
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NewType

Check = Callable[[Any], bool]
_PLAIN = (type(None), bool, int, float, str, bytes, decimal.Decimal)


@lru_cache(maxsize=512)
def check_of(hint: Any) -> Check:
    """Return the test of values for an annotation.

    Raises: TypeError for an annotation that is not known here.
    """
    if hint is Any:
        return is_plain
    if isinstance(hint, NewType):
        return check_of(hint.__supertype__)
    if isinstance(hint, type) and not typing.get_args(hint):
        return lambda value: type(value) is hint or (hint is float and type(value) is int)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is None:
        return lambda value: value is None
    if origin is typing.Literal:
        return lambda value: type(value) is str and value in args
    if origin in (typing.Union, types.UnionType):
        tests = [check_of(arg) for arg in args]
        return lambda value: any(test(value) for test in tests)
    if origin is tuple:
        return _tuple(args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(check_of, args)
        return lambda value: (
            isinstance(value, dict) and all(key(k) and item(v) for k, v in value.items())
        )
    raise TypeError(f"{hint!r} is no annotation of stored data")


def is_plain(value: Any) -> bool:
    """Return whether scalars, lists and dicts alone make up the value, as in rows and states."""
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    return type(value) in _PLAIN


def _tuple(args: tuple[Any, ...]) -> Check:
    if len(args) == 2 and args[1] is Ellipsis:
        element_check = check_of(args[0])
        return lambda value: type(value) is tuple and all(map(element_check, value))
    tests = [check_of(arg) for arg in args]
    return lambda value: (
        type(value) is tuple
        and len(value) == len(tests)
        and all(test(part) for test, part in zip(tests, value, strict=True))
    )
