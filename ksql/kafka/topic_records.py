"""Some records of topics, read for a look at them: no group, nothing is committed."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from ksql.kafka.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.core import RawRecord
    from ksql.kafka.admin import Admin, Offsets, Partition
    from ksql.kafka.settings import KafkaSettings

_LONGEST_S: Final = 5.0
_MOST_BYTES: Final = 32 << 20
_FETCH_BYTES: Final = 256 << 10
_POLL: Final = 1000


class TopicRecords:
    """The ``Records`` of statements over Kafka; each call takes five seconds and 32 MiB at most."""

    def __init__(self, settings: KafkaSettings, admin: Admin) -> None:
        self._settings = settings
        self._admin = admin

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        """Return the offset of the first record at or after that time, of every partition.

        Raises: UnknownTopic, KafkaUnreachable.
        """
        return self._admin.offsets_at(topics, time_ms)

    def read(
        self, spans: Mapping[Partition, tuple[int, int]], most: int | None = None
    ) -> list[RawRecord]:
        """Return the records from the first to before the second offset of each partition.

        The first ``most`` of each; fewer, if they do not come in time or are too large.

        Raises: OffsetsGone, KafkaDenied, KafkaUnreachable, UnknownTopic.
        """
        ends = {partition: end for partition, (start, end) in spans.items() if start < end}
        records: list[RawRecord] = []
        if not ends:
            return records
        left = dict(ends)
        counts: Counter[Partition] = Counter()
        room, deadline = _MOST_BYTES, time.monotonic() + _LONGEST_S
        with Reader(self._settings, **{"max.partition.fetch.bytes": _FETCH_BYTES}) as reader:
            reader.assign({partition: spans[partition][0] for partition in left})
            while left and room > 0 and (rest_s := deadline - time.monotonic()) > 0:
                for record in reader.poll(_POLL, rest_s):
                    partition = record.topic, record.partition
                    if record.offset < ends[partition] and counts[partition] != most:
                        records.append(record)
                        counts[partition] += 1
                        room -= len(record.key or b"") + len(record.value or b"")
                positions = reader.positions
                left = {
                    at: end
                    for at, end in left.items()
                    if positions[at] < end and counts[at] != most
                }
                reader.hold(ends.keys() - left.keys())
        return records
