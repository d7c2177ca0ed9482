"""The partitions of results: for windowed ones that of the key without its window.

Kafka's client hashes the whole key, so that of windowed records the partition is given to it. The
partition of other records is given as well where a task's records go to all partitions. Sorted out,
they cost the client a third less than taking turns, which fills many batches at once.

Source: Kafka Streams' ``WindowedStreamPartitioner``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from ksql.exec.dataflow.partitioning.murmur2 import partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.core.records import OutRecord

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
    keys = [record[0] for record in records]
    out: defaultdict[int, list[OutRecord]] = defaultdict(list)
    for partition, record in zip(key_partitions(keys, count, window_bytes), records, strict=True):
        out[home if partition == ANYWHERE else partition].append(record)
    return out


def key_partitions(keys: Sequence[bytes | None], count: int, window_bytes: int) -> list[int]:
    """Return the partition of each key among so many, ANYWHERE for none; windows do not count."""
    end = -window_bytes or None
    partitions = partitions_of([b"" if key is None else key[:end] for key in keys], count)
    if None not in keys:
        return partitions
    return [
        ANYWHERE if key is None else number for key, number in zip(keys, partitions, strict=True)
    ]
