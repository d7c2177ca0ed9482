"""Records in and out of Kafka for the service itself: a sender, a transaction, a reader."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ksql.core.errors import KsqlError, ServerError
from ksql.core.records import RawRecord
from ksql.kafka.admin import Admin, Offsets, Partition
from ksql.kafka.client_errors import LastError
from ksql.kafka.errors import (
    FENCED,
    KafkaUnreachable,
    OffsetsGone,
    ProducerFenced,
    UnknownTopic,
    WriteFailed,
    error_of,
    given_up,
    is_retriable,
    is_unknown_topic,
    retrying,
    translated,
)
from ksql.kafka.latest_by_key import LastMessages, LastRecords, contents, first_behind, take_last
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.timestamp_zero import send_at_epoch
from ksql.kafka.versions import check_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ksql.core.records import Headers
    from ksql.kafka.settings import KafkaSettings

BEGINNING: Final = -2
END: Final = -1

_FULL_WAIT_S: Final = 0.05
_LOOK_AGAIN_S: Final = 5.0
_STEP_S: Final = 0.1
_CONNECT_S: Final = 1.0
_BATCH: Final = 5000
_MOST_LAST: Final = 10_000


def not_written(bootstrap: str, topic: str, error: KafkaError) -> KsqlError:
    """Return why a record was not acknowledged."""
    if is_retriable(error):
        return given_up(bootstrap, error)
    if is_unknown_topic(error):
        return UnknownTopic(topic)
    return WriteFailed(topic, error.str())


class SenderClosed(ServerError):
    """A record came after the sender was closed."""

    def __init__(self) -> None:
        super().__init__("nothing is written to Kafka any more: the server is shutting down")


class _Failed:
    """The records that were not delivered.

    Apart from the sender, as its producer keeps the callback: see ``LastError``.
    """

    def __init__(self) -> None:
        self._all: list[tuple[str, KafkaError]] = []

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Take what the producer says of a record."""
        if error is not None:
            self._all.append((message.topic() or "", error))

    def taken(self) -> tuple[str, KafkaError] | None:
        """Return the first, if any, and forget all."""
        first = self._all[0] if self._all else None
        self._all.clear()
        return first


class Sender:
    """An idempotent producer; a record counts when ``flush`` has returned.

    For one user at a time: ``flush`` reports on all records since the last one, of any sender.
    Threads that share a producer share a ``SharedSender``.
    """

    def __init__(self, settings: KafkaSettings, **config: str | float | bool) -> None:
        self._settings = settings
        self._failed = _Failed()
        self._last_error = LastError()
        self._client: Producer | None = self._opened(settings.producer(**config))
        self._on_delivery: Callable[[KafkaError | None, Message], None] | None = self._failed.report

    def _opened(self, config: Mapping[str, str | float | bool]) -> Producer:
        return Producer({**config, "error_cb": self._last_error.note}, logger=CLIENT_LOG)

    @property
    def _producer(self) -> Producer:
        if self._client is None:
            raise SenderClosed
        return self._client

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp: int | None = None,
        headers: Headers | None = None,
        partition: int = -1,
    ) -> None:
        """Hand a record over; waits while the queue is full.

        Raises: WriteFailed for one that can never be sent, KafkaUnreachable.
        """
        if timestamp == 0:
            self.flush()
            send_at_epoch(self._settings.producer(), topic, key, value, headers)
            return
        began = time.monotonic()
        end = began + self._settings.timeout_s
        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp or 0,
                    headers=list(headers or ()),
                    on_delivery=self._on_delivery,
                )
                self._producer.poll(0)
            except BufferError:
                if time.monotonic() > end:
                    raise KafkaUnreachable(
                        self._settings.bootstrap, self._last_error.text
                    ) from None
                self._producer.poll(_FULL_WAIT_S)
            except (KafkaException, SystemError) as problem:
                if time.monotonic() > began + _LOOK_AGAIN_S or not self._look_again(topic, problem):
                    raise self._failure(topic, problem) from problem
            else:
                return

    def _look_again(self, topic: str, problem: Exception) -> bool:
        """Ask for a topic's partitions if one was unknown: it may have more by now."""
        unknown = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - the library's name
        if not isinstance(problem, KafkaException) or error_of(problem).code() != unknown:
            return False
        with contextlib.suppress(KafkaException):  # the next try reports it
            self._producer.list_topics(topic, timeout=_LOOK_AGAIN_S)
        self._producer.poll(_FULL_WAIT_S)
        return True

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is acknowledged.

        Raises: WriteFailed, KafkaUnreachable.
        """
        try:
            left = self._producer.flush(
                self._settings.timeout_s if timeout_s is None else timeout_s
            )
        except (KafkaException, SystemError) as problem:
            raise self._failure("", problem) from problem
        if failed := self._failed.taken():
            raise not_written(self._settings.bootstrap, *failed)
        if left:
            self._producer.purge()
            self._producer.flush(1.0)
            self._failed.taken()
            raise KafkaUnreachable(self._settings.bootstrap, self._last_error.text)

    def close(self, timeout_s: float = 5.0) -> None:
        """Send what is left, for that long at most, and release the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            client.flush(timeout_s)

    def _failure(self, topic: str, problem: Exception) -> KsqlError:
        """Return our error for a fatal one.

        The client wraps it when callbacks were waiting meanwhile.
        """
        cause = problem if isinstance(problem, KafkaException) else problem.__cause__
        if not isinstance(cause, KafkaException):
            raise problem
        return WriteFailed(topic, error_of(cause).str())


class CommitInDoubt(ServerError):
    """Kafka did not say whether a transaction counts; only the topic itself shows it."""

    def __init__(self, transactional_id: str, reason: str) -> None:
        super().__init__(
            f'it is not known whether the transaction of "{transactional_id}" was committed',
            detail=reason,
        )


class TransactionalSender(Sender):
    """A producer whose records count together or not at all.

    The id is fenced: ``start`` ends whatever an earlier producer with it left open.
    """

    def __init__(
        self, settings: KafkaSettings, transactional_id: str, **config: str | float | bool
    ) -> None:
        super().__init__(settings, **{"transactional.id": transactional_id}, **config)
        self._id = transactional_id
        self._config = {"transactional.id": transactional_id, **config}
        self._on_delivery = None  # the commit fails unless all arrived
        self._usable = True

    def start(self) -> None:
        """Take over the transactional id.

        Raises: KafkaUnreachable, KafkaDenied.
        """
        self._step(self._producer.init_transactions)
        self._usable = True

    def reopen(self) -> None:
        """Begin again: a transaction of ours that is still open is committed or aborted for good.

        Raises: KafkaUnreachable, KafkaDenied.
        """
        self._usable = False
        self._producer.purge()
        self._client = self._opened(self._settings.producer(**self._config))
        self.start()

    def recover(self) -> None:
        """Begin again if the last transaction could not be ended: it would hide what others write.

        Raises: KafkaUnreachable, KafkaDenied.
        """
        if not self._usable:
            self.reopen()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commit the records sent inside at the end; abort them if an exception leaves.

        Raises: CommitInDoubt if they may count; after ProducerFenced, WriteFailed and
            KafkaUnreachable they do not.
        """
        self.recover()
        self._step(lambda _: self._producer.begin_transaction())
        try:
            yield self
        except ProducerFenced:
            raise  # nothing of ours is open any more
        except BaseException:
            self._abort()
            raise
        self._commit()

    def _commit(self) -> None:
        """Commit; only an error that demands the transaction's end says that it failed."""
        try:
            self._step(self._producer.commit_transaction)
        except BaseException as problem:
            cause = problem.__cause__
            if isinstance(cause, KafkaException) and error_of(cause).txn_requires_abort():
                self._abort()
                raise
            self._usable = isinstance(problem, ProducerFenced)
            raise CommitInDoubt(self._id, str(problem)) from problem

    def _abort(self) -> None:
        """Give the transaction up; if that fails, the producer can only begin from the start."""
        try:
            self._producer.abort_transaction(self._settings.timeout_s)
        except KafkaException:
            self._usable = False
        self._failed.taken()

    def _failure(self, topic: str, problem: Exception) -> KsqlError:
        if isinstance(problem, KafkaException) and error_of(problem).code() in FENCED:
            return ProducerFenced(self._id)
        return super()._failure(topic, problem)

    def _step(self, call: Callable[[float], None]) -> None:
        def run(left: float, _tries: int) -> None:
            try:
                call(left)
            except KafkaException as problem:
                if error_of(problem).code() in FENCED:
                    raise ProducerFenced(self._id) from problem
                raise

        retrying(
            run,
            bootstrap=self._settings.bootstrap,
            timeout_s=self._settings.timeout_s,
            what="Kafka transaction failed",
        )


class Reader:
    """Reads assigned partitions from given offsets; no consumer group, nothing is committed.

    For one thread. Broker outages are waited out; only ``read_to_end`` gives up.
    """

    def __init__(self, settings: KafkaSettings, **config: str | float | bool) -> None:
        self._settings = settings
        self._admin = Admin(settings)
        self._positions: Offsets = {}
        self._held: set[Partition] = set()
        self._left: list[Message] = []
        self._connected = False
        self._last_error = LastError()
        self._consumer = Consumer(
            {**settings.consumer(**config), "error_cb": self._last_error.note}, logger=CLIENT_LOG
        )

    @property
    def positions(self) -> Offsets:
        """The offset of the next record of every partition."""
        return dict(self._positions)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions, and only these, from these offsets (or BEGINNING, or END).

        Raises: UnknownTopic, KafkaUnreachable.
        """
        start = dict(offsets)
        for symbol, ask in ((BEGINNING, self._admin.begin_offsets), (END, self._admin.end_offsets)):
            topics = {topic for (topic, _), offset in start.items() if offset == symbol}
            if topics:
                known = ask(sorted(topics))
                start.update({p: known[p] for p, offset in start.items() if offset == symbol})
        self.hold(())
        self._left = []
        self._positions = start
        self._connect()
        self._consumer.assign([TopicPartition(*p, offset) for p, offset in start.items()])

    def assign_topics(self, topics: list[str], start: int = BEGINNING) -> None:
        """Read all partitions of the topics.

        Raises: UnknownTopic, KafkaUnreachable.
        """
        known = self._admin.begin_offsets(topics)
        self.assign(known if start == BEGINNING else dict.fromkeys(known, start))

    def hold(self, places: Collection[Partition]) -> None:
        """Read no more of these partitions, until another call leaves them out."""
        paused = set(places)
        if begun := paused - self._held:
            self._consumer.pause([TopicPartition(*partition) for partition in begun])
        if ended := self._held - paused:
            self._consumer.resume([TopicPartition(*partition) for partition in ended])
        self._held = paused

    def poll(self, most: int = _BATCH, timeout_s: float = 1.0) -> list[RawRecord]:
        """Return up to ``most`` records, as soon as there are any; empty when the time is over.

        Raises: OffsetsGone, UnknownTopic, KafkaDenied, NewerRecord.
        """
        got = self._gathered(most, timeout_s, 0)  # what is there already
        return [self._record(message) for message in got if self._is_record(message)]

    def poll_last(
        self,
        most: int = _MOST_LAST,
        timeout_s: float = 1.0,
        gather_s: float = 0.0,
        stops: Mapping[Partition, int] | None = None,
    ) -> LastRecords:
        """Poll; return the last record of each key by partition, none of those without a key.

        For readers that a key's last record is enough for: cheaper than ``poll``. ``gather_s`` is
        how long to wait for more records after the first: many at once cost less. Where a
        partition has one of the ``stops``, this call ends there; the next one continues.
        Raises: OffsetsGone, UnknownTopic, KafkaDenied.
        """
        got, self._left = self._left or self._gathered(most, timeout_s, gather_s), []
        ahead = {
            partition: at
            for partition, at in (stops or {}).items()
            if at > self._positions[partition]
        }
        latest: LastMessages = {}
        begin = 0
        errors = [at for at, error in enumerate(map(Message.error, got)) if error is not None]
        for at in (*errors, len(got)):  # in order: both move the position
            run = got[begin:at]
            kept = first_behind(run, ahead) if ahead else len(run)
            take_last(run[:kept], self._positions, latest)
            if kept < len(run):
                partition = (run[kept].topic() or "", run[kept].partition() or 0)
                self._positions[partition], self._left = ahead[partition], got[begin + kept :]
                break
            if at < len(got):
                self._is_record(got[at])
            begin = at + 1
        check_versions(latest)
        return contents(latest)

    def _gathered(self, most: int, timeout_s: float, gather_s: float) -> list[Message]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        return [first, *self._consumer.consume(most - 1, gather_s)] if most > 1 else [first]

    def read_to_end(self, timeout_s: float | None = None) -> Iterator[list[RawRecord]]:
        """Yield batches up to where the partitions end now (as far as it is committed).

        ``timeout_s``: without any progress. Raises: KafkaUnreachable and what ``poll`` does.
        """
        patience = self._settings.timeout_s if timeout_s is None else timeout_s
        topics = sorted({topic for topic, _ in self._positions})
        ends = self._admin.end_offsets(topics) if topics else {}
        for partition, position in self._positions.items():
            if position > ends.get(partition, 0):
                raise OffsetsGone(
                    *partition, f"it ends at {ends.get(partition, 0)}, before {position}"
                )
        seen, since = dict(self._positions), time.monotonic()
        while any(self._positions[p] < ends.get(p, 0) for p in self._positions):
            if batch := self.poll(timeout_s=_STEP_S):
                yield batch
            if seen != self._positions:
                seen, since = dict(self._positions), time.monotonic()
            elif time.monotonic() - since > patience:
                raise KafkaUnreachable(self._settings.bootstrap, self._last_error.text)

    def close(self) -> None:
        """Release the connections."""
        self._consumer.close()
        self._admin.close()

    def __enter__(self) -> Self:
        """Return the reader itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _connect(self) -> None:
        """Connect before the first partitions are given.

        A client that is not connected then looks for their leaders again at the next of its turns,
        one a second.
        """
        topic = next((topic for topic, _ in self._positions), None)
        if self._connected or topic is None:
            return
        try:
            self._consumer.list_topics(topic, _CONNECT_S)
            self._connected = True
        except KafkaException as problem:  # it tries again by itself
            self._last_error.note(error_of(problem))

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        partition = (message.topic() or "", message.partition() or 0)
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library names it so
            # the end lies after the markers of transactions, which are no records
            self._positions[partition] = message.offset() or 0
        elif code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            raise OffsetsGone(*partition, error.str())
        elif is_retriable(error):
            self._last_error.note(error)
        else:
            raise translated(error, partition[0], "Cannot read")
        return False

    def _record(self, message: Message) -> RawRecord:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None  # noqa: S101, PT018
        self._positions[topic, partition] = offset + 1
        return RawRecord(
            topic,
            partition,
            offset,
            message.timestamp()[1],
            message.key(),
            message.value(),
            message.headers(),  # type: ignore[arg-type] # values are bytes when they were read
        )
