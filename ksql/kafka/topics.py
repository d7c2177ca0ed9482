"""Kafka's topics as the engine wants them, sizes of sampled records, and the last records.

The sizes of some records of a topic stand for those of all.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError
from ksql.kafka.embedded.broker_config import AFTER_MAX_MS
from ksql.kafka.errors import UnknownTopic
from ksql.kafka.reader import Reader
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.core import RawRecord
    from ksql.kafka.admin import Admin, Offsets, Partition
    from ksql.kafka.settings import KafkaSettings


_log = logging.getLogger(__name__)
_AFTER: Final = "message.timestamp.after.max.ms"


class KafkaTopics:
    """The ``Topics`` protocol over Kafka's administration."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self, name: str) -> Topic | None:
        topic = self._admin.describe([name]).get(name)
        if topic is None:
            return None
        return Topic(topic.name, topic.partitions, topic.replicas, topic.configs)

    def identity(self, name: str) -> str:
        """Return Kafka's own id of the topic; empty if there is none."""
        return self._admin.topic_id(name) or ""

    def lost(self, name: str) -> int:
        """Return how many records retention has deleted at its beginning, or somebody."""
        return sum(self._admin.begin_offsets([name]).values())

    def create(self, topic: Topic) -> bool:
        """Create it, unless it exists; it takes no record that is too late for every query."""
        created = self._admin.create(topic)
        if created:
            self._bound_times(topic.name)
        return created

    def _bound_times(self, name: str) -> None:
        """Lower the brokers' bound where it is higher; those before Kafka 3.6 have none."""
        try:
            topic = self._admin.describe([name]).get(name)
            if topic is not None and int(topic.configs.get(_AFTER, 0)) > AFTER_MAX_MS:
                self._admin.alter_configs(name, {_AFTER: str(AFTER_MAX_MS)})
        except KsqlError as problem:  # the topic is there and can be used
            _log.warning("times_not_bounded", extra={"topic": name, "reason": problem.text()})

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that exist."""
        for name in names:
            try:
                self._admin.delete(name)
            except UnknownTopic:
                continue


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


_LONGEST_S: Final = 5.0
_MOST_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 256 << 10
_POLL: Final = 1000


class TopicRecords:
    """The ``Records`` of statements over Kafka; each call takes five seconds and 32 MiB at most."""

    def __init__(self, settings: KafkaSettings, admin: Admin) -> None:
        self._settings = settings
        self._admin = admin

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        return self._admin.offsets_at(topics, time_ms)

    def read(
        self, spans: Mapping[Partition, tuple[int, int]], most: int | None = None
    ) -> list[RawRecord]:
        """Return the records from the first to before the second offset of each partition.

        The first ``most`` of each; fewer, if they do not come in time or are too large.

        Raises: OffsetsGone, KafkaDenied, KafkaUnreachable, UnknownTopic.
        """
        return self._read(spans, most)[0]

    def read_some(self, spans: Mapping[Partition, tuple[int, int]]) -> tuple[list[RawRecord], bool]:
        return self._read(spans, None)

    def _read(
        self, spans: Mapping[Partition, tuple[int, int]], most: int | None
    ) -> tuple[list[RawRecord], bool]:
        ends = {partition: end for partition, (start, end) in spans.items() if start < end}
        records: list[RawRecord] = []
        if not ends:
            return records, True
        left = dict(ends)
        counts: Counter[Partition] = Counter()
        room, deadline = _MOST_BYTES, time.monotonic() + _LONGEST_S
        with Reader(self._settings, **{"max.partition.fetch.bytes": _BLOCK_BYTES}) as reader:
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
                reader.pause(ends.keys() - left.keys())
        return records, not left
