"""The registry's log as a compacted topic of Kafka, as Confluent's registry keeps it.

Several servers may share the topic: their writes are transactions of one transactional id, so
a new writer shuts the one before out. Confluent's registry knows nothing of that;
it may take the topic over, but not write to it at the same time.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ksql.core.errors import KsqlError, StartError
from ksql.kafka.admin import Admin
from ksql.kafka.errors import ProducerFenced
from ksql.kafka.producers.record_writer import CommitInDoubt
from ksql.kafka.producers.sender import TransactionalSender
from ksql.kafka.reader import Reader
from ksql.kafka.stable_end import OpenTransaction, settled_end
from ksql.registry.records import UnreadableRecord, decode, encode
from ksql.registry.store import NotWritten
from ksql.sql.catalog.topic import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core.records import RawRecord
    from ksql.kafka.admin import TopicInfo
    from ksql.kafka.settings import KafkaSettings
    from ksql.registry.records import Change

_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"
_SETTLED_S: Final = 2.0


def writer_id(topic: str) -> str:
    """Return the transactional id under which the topic is written."""
    return f"ksql-schema-registry-{topic}"


class UnfitRegistryTopic(StartError):
    """A topic that would lose schemas, or mix up their order."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"the topic {topic} cannot keep the schemas of the embedded registry: {what}",
            detail="Schemas would be lost or overwritten, and records that use them with them.",
            hint="Give it one partition and cleanup.policy=compact, "
            "or name another topic in ksql.schema.registry.topic.",
        )


class KafkaSchemaLog:
    """See SchemaLog in ``ksql.registry.store``; made, and its topic with it, by ``open``."""

    def __init__(self, settings: KafkaSettings, topic: str, replicas: int) -> None:
        self._settings = settings
        self._topic = topic
        self._replicas = replicas
        self._admin = Admin(settings)
        self._reader = Reader(settings)
        self._sender: TransactionalSender | None = None
        self._ours = 0
        """The end of the log when all before it was read or written by us."""

    @property
    def where(self) -> str:
        """Describe the log's place for messages."""
        return f"the topic {self._topic} in Kafka at {self._settings.bootstrap}"

    def open(self) -> None:
        """Make the topic if it is missing; read it from the beginning.

        Raises: UnfitRegistryTopic, KafkaUnreachable.
        """
        topic = self._admin.describe([self._topic]).get(self._topic)
        if topic is None:
            new = Topic(self._topic, 1, self._replicas, {_POLICY: _COMPACT})
            if not self._admin.create(new):  # another server has, since then
                topic = self._admin.describe([self._topic]).get(self._topic)
        if topic is not None:
            self._check(topic)
        self._reader.assign({(self._topic, 0): 0})

    def read(self, *, to_end: bool) -> list[Change]:
        """See SchemaLog."""
        with self._whole():
            batches = self._to_end() if to_end else iter(lambda: self._reader.poll(timeout_s=0), [])
            changes = [self._change(record) for batch in batches for record in batch]
        return [one for one in changes if one is not None]

    def hold(self) -> list[Change]:
        """See SchemaLog."""
        with self._whole():
            if self._sender is None:  # first: it ends what a dead writer has left open
                self._begin()
                changes = self.read(to_end=True)
            else:
                changes = self.read(to_end=True)
                if self._position != self._ours:
                    self._begin()
                    changes += self.read(to_end=True)
        self._ours = self._position
        return changes

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Count what is read only if all of it could be: else the next try begins here again."""
        known = self._position
        try:
            yield
        except BaseException:
            self._reader.assign({(self._topic, 0): known})
            raise

    def write(self, changes: Sequence[Change]) -> None:
        """See SchemaLog."""
        sender, records = self._sender, [encode(change) for change in changes]
        assert sender is not None, "hold comes before write"  # noqa: S101
        try:
            with sender.transaction():
                for key, value in records:
                    sender.send(self._topic, key, value, partition=0)
        except ProducerFenced as shut_out:
            self._release()
            raise NotWritten(shut_out) from shut_out
        except CommitInDoubt as doubt:
            self._settle(records, doubt)
        except KsqlError:  # whatever it was, the next one to write begins from the start
            self._release()
            raise
        self._ours = settled_end(self._admin, (self._topic, 0), self._settings.timeout_s)

    def _settle(self, records: Sequence[tuple[bytes, bytes | None]], doubt: CommitInDoubt) -> None:
        """Look in the log whether a transaction in doubt counts.

        Who fenced us has had Kafka end it; otherwise we do that, by beginning again as a writer.

        Raises: NotWritten if it does not count; CommitInDoubt as long as that is unknown.
        """
        partition, at = (self._topic, 0), self._position
        shut_out = isinstance(doubt.__cause__, ProducerFenced)
        self._release()
        try:
            if not shut_out:
                self._take_over()
            written = [record for batch in self._to_end() for record in batch]
        except KsqlError as away:
            raise doubt from away
        finally:
            self._reader.assign({partition: at})
        ours = [(at + number, *record) for number, record in enumerate(records)]
        if [(one.offset, one.key, one.value) for one in written[: len(ours)]] != ours:
            cause = doubt.__cause__
            raise NotWritten(cause if isinstance(cause, KsqlError) else doubt) from doubt

    def close(self) -> None:
        """Release the connections."""
        self._reader.close()
        self._release()
        self._admin.close()

    @property
    def _position(self) -> int:
        return self._reader.positions[self._topic, 0]

    def _to_end(self) -> Iterator[list[RawRecord]]:
        partition = (self._topic, 0)
        try:
            settled_end(self._admin, partition, _SETTLED_S)
        except OpenTransaction:  # a dead writer's: who follows it ends it
            self._take_over()
            settled_end(self._admin, partition, self._settings.timeout_s)
        return self._reader.read_to_end()

    def _begin(self) -> None:
        try:
            self._take_over()
        except ProducerFenced as shut_out:
            raise NotWritten(shut_out) from shut_out

    def _take_over(self) -> None:
        self._release()
        sender = TransactionalSender(self._settings, writer_id(self._topic))
        try:
            sender.start()
        except BaseException:
            sender.close()
            raise
        self._sender = sender

    def _release(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _check(self, topic: TopicInfo) -> None:
        if topic.partitions != 1:
            raise UnfitRegistryTopic(self._topic, f"it has {topic.partitions} partitions, not one")
        policy = topic.configs.get(_POLICY, _COMPACT)
        if policy != _COMPACT:
            raise UnfitRegistryTopic(self._topic, f"its {_POLICY} is {policy}, not {_COMPACT}")

    def _change(self, record: RawRecord) -> Change | None:
        try:
            return decode(record.key, record.value)
        except UnreadableRecord as error:
            position = f" at offset {record.offset} of {self._topic}"
            raise UnreadableRecord(record.key, error.reason, position) from error
