"""Groups results by Kafka partition (murmur2 of the key); labels for Spark's shuffle.

Kafka's client hashes the whole key, so the partition of a windowed record is given to it, as Kafka
Streams chooses it. The partition of other records is given as well where a task's records go to all
partitions. Sorted out, they cost the client a third less than taking turns, which fills many
batches at once.

Source: Kafka Streams' ``WindowedStreamPartitioner``.

Each bucket of an exchange has a label that puts it on a shuffle partition of its own.

Spark places a row by ``pmod(murmur3(label), partitions)``: labels 0, 1, 2 .. would often meet on
one partition and leave others without work. Labels are fixed with the checkpoint, because state
lies where its label says.

Source: Spark's ``HashPartitioning`` and ``Murmur3_x86_32``.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from ksql.exec.dataflow.partitioning import partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.core import OutRecord


ANYWHERE: Final = -1
"""Kafka's client chooses the partition: by the whole key, or any for a record without one."""


def by_partition(
    records: Iterable[OutRecord], count: int, window_bytes: int, home: int = ANYWHERE
) -> Mapping[int, list[OutRecord]]:
    """Return the records by their partition among ``count``, in their order.

    The last ``window_bytes`` of a key do not count; ``home`` is the partition of no key.
    """
    records = list(records)
    if count == 1:  # with a key or without
        return {0: records}
    home = home if home < count else ANYWHERE
    partitions = key_partitions([record[0] for record in records], count, window_bytes)
    if records and partitions.count(partitions[0]) == len(records):  # as a task has its own one
        return {home if partitions[0] == ANYWHERE else partitions[0]: records}
    out: defaultdict[int, list[OutRecord]] = defaultdict(list)
    for partition, record in zip(partitions, records, strict=True):
        out[home if partition == ANYWHERE else partition].append(record)
    return out


def key_partitions(keys: Sequence[bytes | None], count: int, window_bytes: int) -> list[int]:
    """Return the partition of each key among so many, ANYWHERE for none; windows do not count."""
    end = -window_bytes or None
    if None not in keys:
        whole = cast("Sequence[bytes]", keys)
        return partitions_of([key[:end] for key in whole] if end else whole, count)
    partitions = partitions_of([b"" if key is None else key[:end] for key in keys], count)
    return [
        ANYWHERE if key is None else number for key, number in zip(keys, partitions, strict=True)
    ]


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
