"""A journal: a topic of one partition that one writer at a time appends to, and all read in order.

Records are appended in transactions of one transactional id. A writer that takes that id over
fences the one before for good, and has Kafka end the transaction that this one has left open.

Source: KIP-98 on fencing.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from ksql.core import ServerError
from ksql.kafka.admin import Admin, TopicInfo
from ksql.kafka.producers.sender import TransactionalSender
from ksql.kafka.reader import Reader
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.core import RawRecord
    from ksql.kafka.settings import KafkaSettings

Entry = tuple[bytes, bytes | None]
"""A record's key and its value."""
_SETTLE_S: Final = 0.005


class OpenTransaction(ServerError):
    """A transaction that neither commits nor aborts hides what comes after it."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"a transaction on the topic {topic} stays open",
            hint="Its writer may hang; Kafka aborts it after its transaction.timeout.ms.",
        )


class Journal:
    """One journal, opened for reading and perhaps for writing; for one thread at a time."""

    def __init__(
        self,
        settings: KafkaSettings,
        topic: str,
        replicas: int,
        configs: Mapping[str, str],
        writer_id: str = "",
    ) -> None:
        """Take ``replicas`` and ``configs`` of a topic that is made here.

        ``writer_id`` is the transactional id of its writers, else the topic's name.
        """
        self.topic = topic
        self.admin = Admin(settings)
        self._settings = settings
        self._new = Topic(topic, 1, replicas, configs)
        self._writer_id = writer_id or topic
        self._partition = (topic, 0)
        self._reader: Reader | None = None
        self._sender: TransactionalSender | None = None

    def ensure_topic(self) -> TopicInfo | None:
        """Make the topic if it is missing.

        Returns: the topic that was there, or that another server has made meanwhile; else None.
        Raises: KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        topic = self.admin.topics().get(self.topic)
        if topic is None and not self.admin.create(self._new):
            topic = self.admin.topics().get(self.topic)
        return topic

    # --- reading

    def end(self) -> int:
        """Return the offset after the last record that is committed.

        Raises: KafkaUnreachable, UnknownTopic.
        """
        return self.admin.end_offsets([self.topic])[self._partition]

    def settled_end(self, limit_s: float | None = None) -> int:
        """Return the end once the markers of all transactions are there, so that nothing is hidden.

        The broker writes them after it has answered; until then the records are not readable, and
        the next offset is not known.

        Raises: OpenTransaction when one stays open for longer, by default than Kafka's time limit.
        """
        limit_s = self._settings.timeout_s if limit_s is None else limit_s
        deadline = time.monotonic() + limit_s
        while True:
            readable = self.end()
            ends = self.admin.end_offsets([self.topic], committed=False)
            if readable == ends[self._partition]:
                return readable
            if time.monotonic() > deadline:
                raise OpenTransaction(self.topic)
            time.sleep(_SETTLE_S)

    @property
    def reading(self) -> bool:
        """Whether there is a position to read from."""
        return self._reader is not None

    @property
    def position(self) -> int:
        """The offset that is read next; ``seek`` comes first."""
        return self._positioned_reader.positions[self._partition]

    def seek(self, offset: int) -> None:
        """Read from that offset on (or from BEGINNING).

        Raises: UnknownTopic, KafkaUnreachable.
        """
        if self._reader is None:
            self._reader = Reader(self._settings)
        self._reader.assign({self._partition: offset})

    def read_to_end(self) -> Iterator[list[RawRecord]]:
        """Yield batches of records up to where the topic ends now.

        Raises: OffsetsGone for a topic that was recreated or cut, KafkaUnreachable.
        """
        return self._positioned_reader.read_to_end()

    def read_so_far(self) -> Iterator[list[RawRecord]]:
        """Yield batches of records that are here already; Kafka is not waited for."""
        return iter(lambda: self._positioned_reader.poll(timeout_s=0), [])

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Count what is read inside only if no exception leaves: else it is read again."""
        position = self.position
        try:
            yield
        except BaseException:
            self.seek(position)
            raise

    def stop_reading(self) -> None:
        """Forget the position and release the reader's connections; ``seek`` opens them again."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    @property
    def _positioned_reader(self) -> Reader:
        assert self._reader is not None, "seek comes before reading"  # noqa: S101
        return self._reader

    # --- writing

    @property
    def writing(self) -> bool:
        """Whether this is a writer, as far as is known here."""
        return self._sender is not None

    @property
    def sender(self) -> TransactionalSender:
        """The right to write; ``acquire`` comes first."""
        assert self._sender is not None, "acquire comes before writing"  # noqa: S101
        return self._sender

    def acquire(self) -> None:
        """Become the writer: another one is fenced, and what it left open is ended.

        Raises: KafkaUnreachable, KafkaDenied, ProducerFenced if yet another one is quicker.
        """
        self.release()
        sender = TransactionalSender(self._settings, self._writer_id)
        try:
            sender.start()
        except BaseException:
            sender.close()
            raise
        self._sender = sender

    def append(self, entries: Sequence[Entry]) -> None:
        """Write these records, all or none; they count when this returns.

        Raises: CommitInDoubt if they may count; after any other error they do not.
        """
        sender = self.sender
        with sender.transaction():
            for key, value in entries:
                sender.send(self.topic, key, value, partition=0)

    def has(self, offset: int, entries: Sequence[Entry]) -> bool:
        """Return whether these records lie there, once the end is settled: they did count.

        The next read begins at that offset. Raises: KafkaUnreachable.
        """
        self.seek(offset)
        try:
            records = [record for batch in self.read_to_end() for record in batch]
        finally:
            self.seek(offset)
        expected = [(offset + number, *entry) for number, entry in enumerate(entries)]
        return [(one.offset, one.key, one.value) for one in records[: len(expected)]] == expected

    def release(self) -> None:
        """Write no more, until ``acquire``; harmless for one that does not write."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def close(self) -> None:
        self.stop_reading()
        self.release()
        self.admin.close()
