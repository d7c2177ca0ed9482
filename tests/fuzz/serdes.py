"""Bytes of every format, damaged and random: rows, or a decode error for that record."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.core.types.schema import Column
from ksql.formats.schema_registry import MemoryRegistry
from ksql.formats.table import DecodeError, Serde, serde_for
from tests.fuzz.mutate import damaged

_ALL = (
    Column("B", model.BOOLEAN),
    Column("I", model.INTEGER),
    Column("L", model.BIGINT),
    Column("D", model.DOUBLE),
    Column("S", model.STRING),
    Column("Y", model.BYTES),
    Column("N", model.Decimal(8, 3)),
    Column("DA", model.DATE),
    Column("TI", model.TIME),
    Column("TS", model.TIMESTAMP),
)
_NESTED = (
    Column("A", Array(Struct((Field("X", model.BIGINT), Field("Y", Array(model.STRING)))))),
    Column("M", Map(model.STRING, model.Decimal(8, 3))),
)
_ROW = (True, -7, 1 << 40, 1.5e300, "text", b"\0\xff", Decimal("1.250"), 19000, 1234, -5)
_DEEP_ROW = ([{"X": 1, "Y": ["a", "b"]}], {"k": Decimal("2.000")})
_BYTES = list(range(256))


@dataclass(frozen=True)
class Target:
    """A serde and good bytes for it."""

    name: str
    serde: Serde
    good: list[bytes]


@cache
def targets() -> list[Target]:
    """Every format, with all types it can hold."""
    pairs = []
    for name in ("JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"):
        pairs.append(_target(name, (*_ALL, *_NESTED), (*_ROW, *_DEEP_ROW)))
        if name not in ("PROTOBUF", "PROTOBUF_NOSR"):
            pairs.append(_target(name, _NESTED[:1], _DEEP_ROW[:1], wrap=False))
    pairs.append(_target("DELIMITED", _ALL, _ROW))
    pairs += [_target("KAFKA", (_ALL[at],), (_ROW[at],)) for at in (1, 2, 3, 4, 5)]
    return pairs


def _target(
    name: str, columns: tuple[Column, ...], row: tuple[object, ...], *, wrap: bool | None = None
) -> Target:
    serde = serde_for(Format(name, wrap=wrap), columns, "value", MemoryRegistry(), "t-value")
    rows = (row, (None,) * len(columns))
    return Target(name, serde, [data for each in rows if (data := serde.encode(each)) is not None])


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """Bytes for a format, and their reading, alone and in a batch."""
    target = chance.choice(targets())
    if chance.random() < 0.15:
        data = chance.randbytes(chance.randrange(80))
    else:
        broken = list(chance.choice(target.good))
        if broken:
            damaged(chance, broken, _BYTES)
        data = bytes(broken)
    return (target.name, data), lambda: _read(target, data)


def _read(target: Target, data: bytes) -> bool:
    try:
        target.serde.decode(data)
        failed = 0
    except DecodeError:
        failed = 1
    good = target.good[0]
    faults: list[int] = []
    rows = target.serde.decode_many([good, data, good], lambda at, _error: faults.append(at))
    if faults != [1] * failed or len(rows) != 3:
        raise AssertionError(
            f"alone it fails {failed} times, in a batch {faults}, {len(rows)} rows"
        )
    return not failed
