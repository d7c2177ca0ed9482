"""The registry's log as a compacted topic of Kafka, as Confluent's registry keeps it.

Several servers may share the topic: their writes are transactions of one transactional id, so
a new writer shuts the one before out. Confluent's registry knows nothing of that;
it may take the topic over, but not write to it at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError, StartError
from ksql.kafka import Journal, KafkaRefused, OpenTransaction, ProducerFenced
from ksql.kafka.producers import CommitInDoubt
from ksql.registry.records import Change, UnreadableRecord, decode, encode
from ksql.registry.store import NotWritten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core import RawRecord
    from ksql.kafka import Entry, KafkaSettings

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
        self._bootstrap = settings.bootstrap
        self._topic = topic
        self._journal = Journal(settings, topic, replicas, {_POLICY: _COMPACT}, writer_id(topic))
        self._ours = 0
        """The end of the log when all before it was read or written by us."""

    @property
    def where(self) -> str:
        return f"the topic {self._topic} in Kafka at {self._bootstrap}"

    def open(self) -> None:
        """Make the topic if it is missing; read it from the beginning.

        Raises: UnfitRegistryTopic, KafkaUnreachable.
        """
        if self._journal.ensure_topic() is not None:
            self._check()
        self._journal.seek(0)

    def read(self, *, to_end: bool) -> list[Change]:
        with self._journal.all_or_nothing():
            batches = self._to_end() if to_end else self._journal.read_so_far()
            changes = [self._change(record) for batch in batches for record in batch]
        return [one for one in changes if one is not None]

    def acquire(self) -> list[Change]:
        with self._journal.all_or_nothing():
            if not self._journal.writing:  # first: it ends what a dead writer has left open
                self._begin()
                changes = self.read(to_end=True)
            else:
                changes = self.read(to_end=True)
                if self._journal.position != self._ours:
                    self._begin()
                    changes += self.read(to_end=True)
        self._ours = self._journal.position
        return changes

    def write(self, changes: Sequence[Change]) -> None:
        entries = [encode(change) for change in changes]
        try:
            self._journal.append(entries)
        except (ProducerFenced, KafkaRefused) as shut_out:
            # refused: the transaction is aborted, as when another writer comes in the middle of it
            self._journal.release()
            raise NotWritten(shut_out) from shut_out
        except CommitInDoubt as doubt:
            self._settle(entries, doubt)
        except KsqlError:  # whatever it was, the next one to write begins from the start
            self._journal.release()
            raise
        self._ours = self._journal.settled_end()

    def _settle(self, entries: Sequence[Entry], doubt: CommitInDoubt) -> None:
        """Look in the log whether a transaction in doubt counts.

        Who fenced us has had Kafka end it; otherwise we do that, by beginning again as a writer.

        Raises: NotWritten if it does not count; CommitInDoubt as long as that is unknown.
        """
        self._journal.release()
        try:
            if not isinstance(doubt.__cause__, ProducerFenced):
                self._journal.acquire()
            self._await_settled()
            written = self._journal.has(self._journal.position, entries)
        except KsqlError as away:
            raise doubt from away
        if not written:
            cause = doubt.__cause__
            raise NotWritten(cause if isinstance(cause, KsqlError) else doubt) from doubt

    def close(self) -> None:
        self._journal.close()

    def _to_end(self) -> Iterator[list[RawRecord]]:
        self._await_settled()
        return self._journal.read_to_end()

    def _await_settled(self) -> None:
        try:
            self._journal.settled_end(_SETTLED_S)
        except OpenTransaction:  # a dead writer's: who follows it ends it
            self._journal.acquire()
            self._journal.settled_end()

    def _begin(self) -> None:
        try:
            self._journal.acquire()
        except ProducerFenced as shut_out:
            raise NotWritten(shut_out) from shut_out

    def _check(self) -> None:
        """Look whether a topic that was there keeps schemas.

        Raises: UnfitRegistryTopic.
        """
        topic = self._journal.admin.describe([self._topic]).get(self._topic)
        if topic is None:
            return
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
