"""The sizes of some records of a topic, to know those of the others by."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ksql.kafka.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.kafka.admin import Partition
    from ksql.kafka.settings import KafkaSettings

_MOST: Final = 200
_LOOK_S: Final = 0.5
_FETCH_BYTES: Final = 64 << 10


def record_sizes(settings: KafkaSettings, places: Mapping[Partition, int]) -> list[int]:
    """Return the bytes of keys and values of some records from each of these offsets on.

    Of those that come within half a second; partitions that have none there are left out.

    Raises: KsqlError.
    """
    sizes: list[int] = []
    left, deadline = set(places), time.monotonic() + _LOOK_S
    with Reader(settings, **{"max.partition.fetch.bytes": _FETCH_BYTES}) as reader:
        reader.assign(places)
        while left and (rest := deadline - time.monotonic()) > 0:
            for record in reader.poll(_MOST, rest):
                sizes.append(len(record.key or b"") + len(record.value or b""))
                left.discard((record.topic, record.partition))
    return sizes
