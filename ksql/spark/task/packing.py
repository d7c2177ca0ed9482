"""Run-time values as bytes and back (MessagePack), and a table's changes as bytes.

A table's changes become bytes on their way to the groups of an aggregate::

        {old row} {0}                                      the row leaves its group
        {new row} {1}                                      the row enters its group
        {length of the new row} {new row} {old row} {2}    the row changes within its group

The length has four bytes, the highest first. A row is an array as ``packing`` writes it. All three
are always read; ``ksql.exec.dataflow.partitioning.repartition`` decides which of them are written.

Source: KIP-904, the serialization of ``Change``.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any

import ormsgpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.core import Row


_DECIMAL = 1
_BIG_INT = 2
_PACK = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_PASSTHROUGH_BIG_INT
_packb = ormsgpack.packb
_UNPACK = ormsgpack.OPT_NON_STR_KEYS


def pack(value: Any) -> bytes:
    """Pack scalars, lists and dicts; tuples come back as lists.

    Raises:
        TypeError: A value of another type (ormsgpack's MsgpackEncodeError is one).
    """
    return _packb(value, _extend, _PACK)


def packed_each(values: Iterable[Any]) -> Iterator[bytes]:
    """Return the bytes of each value; a call less for each than ``pack``.

    Raises: TypeError, as ``pack``.
    """
    return map(_packb, values, repeat(_extend), repeat(_PACK))


def unpack(data: bytes | memoryview) -> Any:
    """Return the value that was packed."""
    return ormsgpack.unpackb(data, ext_hook=_restore, option=_UNPACK)


def unpack_each(parts: Sequence[bytes]) -> list[Any]:
    """Return many packed values at once, as one array: half the cost of one by one."""
    return unpack_array(parts, len(parts))


def unpack_array(parts: Sequence[bytes], count: int) -> list[Any]:
    """Unpack that many values, of which a part may have several."""
    head = b"\xdd" + count.to_bytes(4, "big")
    values: list[Any] = unpack(head + b"".join(parts))
    return values


def _extend(value: Any) -> ormsgpack.Ext:
    match value:
        case Decimal():
            return ormsgpack.Ext(_DECIMAL, str(value).encode())
        case int():
            return ormsgpack.Ext(_BIG_INT, str(value).encode())
        case _:
            raise TypeError(f"a {type(value).__name__} is no run-time value")


def _restore(tag: int, data: bytes) -> Any:
    if tag == _DECIMAL:
        return Decimal(data.decode())
    if tag == _BIG_INT:
        return int(data)
    raise ValueError(f"unknown extension {tag}")


OLD, NEW, BOTH = range(3)
_OLD, _NEW, _BOTH = (bytes([flag]) for flag in (OLD, NEW, BOTH))
_LENGTH = struct.Struct(">I")


class UnknownChange(ValueError):
    """The bytes of a change that are of none of these forms."""


def pack_changes(news: Sequence[Row | None], olds: Sequence[Row | None]) -> list[bytes]:
    """Return the bytes of each change; one of its two rows may be missing."""
    added = [None if row is None else pack(row) for row in news]
    removed = [None if row is None else pack(row) for row in olds]
    return list(map(_framed, added, removed))


def _framed(new: bytes | None, old: bytes | None) -> bytes:
    if old is None:
        if new is None:
            raise UnknownChange("a change without rows")
        return new + _NEW
    if new is None:
        return old + _OLD
    return _LENGTH.pack(len(new)) + new + old + _BOTH


def unpack_changes(
    changes: Sequence[bytes],
) -> tuple[Sequence[Row | None], Sequence[Row | None]]:
    """Return the new and the old row of each change.

    Packed rows know where they end, so those of all changes are read at once. The lengths are for
    readers to whom they are mere bytes.
    Raises: UnknownChange.
    """
    if b"" in changes:
        raise UnknownChange("a change without bytes")
    flags = [change[-1] for change in changes]
    both = flags.count(BOTH)
    if max(flags, default=OLD) > BOTH:
        raise UnknownChange(f"a change with the flag {max(flags)}")
    head = _LENGTH.size
    parts = [change[head:-1] if change[-1] == BOTH else change[:-1] for change in changes]
    rows: list[Row] = list(map(tuple, unpack_array(parts, len(changes) + both)))
    if both == len(changes):
        return rows[::2], rows[1::2]
    remaining = iter(rows)
    news: list[Row | None] = []
    olds: list[Row | None] = []
    for flag in flags:
        news.append(None if flag == OLD else next(remaining))
        olds.append(None if flag == NEW else next(remaining))
    return news, olds
