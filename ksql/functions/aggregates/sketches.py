"""COUNT_DISTINCT: how many different values, in little memory (HyperLogLog)."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from ksql.functions.spec import AggregateFactory, AggregateFunction
from ksql.java import identity

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ksql.core.types import SqlType
    from ksql.functions.build import Entry

INDEX_BITS = 14
REGISTERS = 1 << INDEX_BITS
RANK_BITS = 64 - INDEX_BITS
SPARSE_LIMIT = 1024
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)

# Few values are kept as their hashes (hexadecimal -> 1): exact and small. Many are kept as one byte
# per register.
State = dict[str, int] | bytes


def _text(value: Hashable) -> str:
    """Return a text that is the same for equal values in every process, sets too."""
    if type(value) is tuple:
        return f"({','.join(map(_text, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_text, value)))}}}"
    return repr(value)


def _hash(value: Hashable) -> str:
    return hashlib.blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _register_and_rank(digest: str) -> tuple[int, int]:
    """Return a hash's register, and the rank of the first set bit after those of the register."""
    number = int(digest, 16)
    return number >> RANK_BITS, RANK_BITS - (number & ((1 << RANK_BITS) - 1)).bit_length() + 1


def _with(registers: bytearray, digest: str) -> None:
    index, rank = _register_and_rank(digest)
    registers[index] = max(registers[index], rank)


def _dense(state: State) -> bytearray:
    if isinstance(state, bytes):
        return bytearray(state)
    registers = bytearray(REGISTERS)
    for digest in state:
        _with(registers, digest)
    return registers


def _packed(state: dict[str, int]) -> State:
    return state if len(state) <= SPARSE_LIMIT else bytes(_dense(state))


def _add(state: State, value: Hashable) -> State:
    digest = _hash(value)
    if isinstance(state, dict):
        state[digest] = 1
        return _packed(state)
    index, rank = _register_and_rank(digest)
    if state[index] >= rank:
        return state
    return state[:index] + bytes([rank]) + state[index + 1 :]


def _merge(first: State, second: State) -> State:
    if isinstance(first, dict) and isinstance(second, dict):
        return _packed({**first, **second})
    return bytes(map(max, _dense(first), _dense(second)))


def estimate(state: State) -> int:
    """Return the number of different values that the state has seen.

    Source: Flajolet and others, HyperLogLog (2007), with linear counting while registers are empty.
    """
    if isinstance(state, dict):
        return len(state)
    raw = _ALPHA * REGISTERS**2 / sum(2.0**-rank for rank in state)
    empty = state.count(0)
    if raw <= 2.5 * REGISTERS and empty:
        raw = REGISTERS * math.log(REGISTERS / empty)
    return round(raw)


def _make(
    types: tuple[SqlType, ...], _literals: tuple[Any, ...], _settings: dict[str, str]
) -> AggregateFunction:
    of = identity(types[0])
    return AggregateFunction(
        ("T val",),
        "BIGINT",
        init=dict,
        step=lambda state, value: _add(state, of(value)),
        result=estimate,
        merge=_merge,
        in_place=("step",),
        sure=True,
        unordered=True,
    )


ROWS: dict[str, Entry] = {
    "COUNT_DISTINCT": (
        "About how many different values there are: exact up to 1,024, then about 1% off "
        "(standard error 0.8%).",
        AggregateFactory(("T val",), (), "BIGINT", _make, state="ARRAY<INT>"),
    ),
}
