"""Labels for the buckets of an exchange: each on a shuffle partition of its own.

Spark places a row by ``pmod(murmur3(label), partitions)``: labels 0, 1, 2 .. would often meet on
one partition and leave others without work. Labels are fixed with the checkpoint, because state
lies where its label says.

Source: Spark's ``HashPartitioning`` and ``Murmur3_x86_32``.
"""

from __future__ import annotations

from functools import cache

_SEED = 42
_MASK = 0xFFFFFFFF


@cache
def bucket_labels(count: int) -> tuple[int, ...]:
    """Return one label per bucket; with as many shuffle partitions each lands on its own."""
    labels: dict[int, int] = {}
    label = 0
    while len(labels) < count:
        labels.setdefault(spark_partition(label, count), label)
        label += 1
    return tuple(labels[bucket] for bucket in range(count))


def spark_partition(label: int, partitions: int) -> int:
    """Return the shuffle partition of an INT."""
    hashed = _murmur3(label & _MASK)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % partitions


def _murmur3(word: int) -> int:
    mixed = _rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4  # the length of an INT
    state = (state ^ (state >> 16)) * 0x85EBCA6B & _MASK
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & _MASK
    return state ^ (state >> 16)


def _rotate(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & _MASK
