"""A registry's log without Kafka: bytes in a list that several stores may share."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksql.kafka.errors import KafkaUnreachable, ProducerFenced
from ksql.registry.records import decode, encode
from ksql.registry.store import NotWritten


@dataclass
class Topic:
    """What Kafka would keep, and who may write."""

    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    writer: object = None
    away: bool = False

    def compact(self):
        """Keep the last record of each key only, as Kafka does; deletions go as well."""
        last = {key: at for at, (key, _) in enumerate(self.records)}
        kept = [(k, v) for at, (k, v) in enumerate(self.records) if last[k] == at]
        self.records = [(k, v) for k, v in kept if v is not None]


class MemoryLog:
    """See SchemaLog."""

    where = "memory"

    def __init__(self, topic=None):
        self.topic = topic or Topic()
        self._read = 0
        self._ours = None

    def read(self, *, to_end):
        if to_end:
            self._reach()
        new, self._read = self.topic.records[self._read :], len(self.topic.records)
        return [one for one in (decode(*record) for record in new) if one is not None]

    def acquire(self):
        self._reach()
        if self._ours != len(self.topic.records):
            self.topic.writer = self
        records = self.read(to_end=True)
        self._ours = self._read
        return records

    def write(self, changes):
        self._reach()
        if self.topic.writer is not self:
            self._ours = None
            raise NotWritten(ProducerFenced("memory"))
        self.topic.records += [encode(one) for one in changes]
        self._ours = len(self.topic.records)

    def close(self):
        pass

    def _reach(self):
        if self.topic.away:
            raise KafkaUnreachable("memory", "it is away")
