"""Keys as bytes: equal values give equal bytes, and the values can be read back."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import ormsgpack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_DECIMAL = 1
_NULL = 0xC0
_LENGTHS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
"""How many bytes the length of a text has, by the byte before."""
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
    """Pack key values into bytes."""
    return ormsgpack.packb(values, default=_extension, option=_OPTIONS)


def unpack(key: bytes) -> list[Any]:
    """Return the values of a packed key."""
    values: list[Any] = ormsgpack.unpackb(key, ext_hook=_restore, option=_OPTIONS)
    return values


def unpack_all(keys: Collection[bytes]) -> list[list[Any]]:
    """Return the values of many packed keys."""
    whole = b"\xdd" + len(keys).to_bytes(4, "big") + b"".join(keys)
    unpacked: list[list[Any]] = ormsgpack.unpackb(whole, ext_hook=_restore, option=_OPTIONS)
    return unpacked


def texts(keys: Iterable[bytes]) -> list[bytes | None]:
    """Return the text of each key, as ``text`` does."""
    # most have less than 32 bytes, and one byte before the text
    return [key[2:] if 0xA0 <= key[1] < _NULL else text(key) for key in keys]


def text(key: bytes) -> bytes | None:
    """Return the text in UTF-8 that a key consists of."""
    head = key[1]
    if head == _NULL:
        return None
    return key[2:] if head < _NULL else key[2 + _LENGTHS[head] :]


def begins_with_null(key: bytes) -> bool:
    """Return whether the first value of a packed key is NULL; a key has less than 16 values."""
    return key[1] == _NULL
