"""The partitions of results: for windowed ones that of the key without its window.

Kafka's client hashes the whole key, so that of windowed records the partition is given to it. It is
given for others as well where a task's records go to all partitions: sorted out, they cost the
client a third less than taking turns, which fills many batches at once.

Source: Kafka Streams' ``WindowedStreamPartitioner``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from ksql.dataflow.murmur2 import partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.base.records import OutRecord

ANYWHERE: Final = -1
"""Kafka's client chooses the partition: by the whole key, or any for a record without one."""


def by_partition(
    records: Iterable[OutRecord], count: int, window_bytes: int, home: int = ANYWHERE
) -> Mapping[int, list[OutRecord]]:
    """Return the records by their partition among ``count``, in their order.

    The last ``window_bytes`` of a key do not count; ``home`` is the partition of no key.
    """
    end, records = -window_bytes or None, list(records)
    if count == 1:  # with a key or without
        return {0: records}
    home = home if home < count else ANYWHERE
    keys = [b"" if record[0] is None else record[0][:end] for record in records]
    out: defaultdict[int, list[OutRecord]] = defaultdict(list)
    for partition, record in zip(partitions_of(keys, count), records, strict=True):
        out[home if record[0] is None else partition].append(record)
    return out
