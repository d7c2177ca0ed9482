"""Keys as bytes: equal values give equal bytes, and the values can be read back."""

from __future__ import annotations

import decimal
from typing import Any

import ormsgpack

_DECIMAL = 1
_NULL = 0xC0
_OPTIONS = ormsgpack.OPT_NON_STR_KEYS


def _extension(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return ormsgpack.Ext(_DECIMAL, str(value).encode())
    raise TypeError(f"a {type(value).__name__} cannot be part of a key")


def _restore(tag: int, data: bytes) -> Any:
    if tag != _DECIMAL:
        raise ValueError(f"unknown key extension {tag}")
    return decimal.Decimal(data.decode())


def pack(values: tuple[Any, ...]) -> bytes:
    """Key values as bytes."""
    return ormsgpack.packb(values, default=_extension, option=_OPTIONS)


def unpack(key: bytes) -> list[Any]:
    """The values of a packed key."""
    values: list[Any] = ormsgpack.unpackb(key, ext_hook=_restore, option=_OPTIONS)
    return values


def begins_with_null(key: bytes) -> bool:
    """Whether the first value of a packed key is NULL; a key has less than 16 values."""
    return key[1] == _NULL
