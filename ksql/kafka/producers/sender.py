"""Records into Kafka for the service itself: a sender for one owner, and one with transactions."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import KafkaError, KafkaException

from ksql.core import ServerError
from ksql.kafka.errors import ProducerFenced, error_of, retrying
from ksql.kafka.producers.record_writer import (
    BY_KEY,
    CommitInDoubt,
    RecordWriter,
    TransactionalWriter,
    not_written,
)
from ksql.kafka.producers.timestamp_zero import send_at_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.core import Headers
    from ksql.kafka.settings import Config, KafkaSettings

_LOOK_AGAIN_S: Final = 5.0
_PAUSE_S: Final = 0.05


class SenderClosed(ServerError):
    """A record came after the sender was closed."""

    def __init__(self) -> None:
        super().__init__("nothing is written to Kafka any more: the server is shutting down")


class Sender:
    """An idempotent producer; a record counts when ``flush`` has returned.

    For one user at a time: ``flush`` reports on all records since the last one, of any sender.
    Threads that share a producer share a ``SharedSender``.
    """

    def __init__(self, settings: KafkaSettings, **config: str | float | bool) -> None:
        self._settings = settings
        self._config: Config = settings.producer(**config)
        self._open_writer: RecordWriter | None = RecordWriter(self._config)

    @property
    def _writer(self) -> RecordWriter:
        if self._open_writer is None:
            raise SenderClosed
        if self._open_writer.errors.fatal:
            self._open_writer = RecordWriter(self._config)
        return self._open_writer

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp: int | None = None,
        headers: Headers | None = None,
        partition: int = BY_KEY,
    ) -> None:
        """Hand a record over; waits while the queue is full.

        Raises: WriteFailed for one that can never be sent, KafkaUnreachable.
        """
        if timestamp == 0:
            self.flush()
            send_at_epoch(self._settings.producer(), topic, key, value, headers)
            return
        writer = self._writer
        wait_s, time_ms = self._settings.timeout_s, timestamp or 0
        began = time.monotonic()
        while True:
            try:
                writer.hand_over(topic, value, key, partition, time_ms, headers, wait_s=wait_s)
                writer.serve()
            except KafkaException as problem:
                if time.monotonic() > began + _LOOK_AGAIN_S or not _look_again(
                    writer, topic, problem
                ):
                    raise writer.failure(topic, problem) from problem
            else:
                return

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is acknowledged.

        Raises: WriteFailed, KafkaUnreachable.
        """
        writer = self._writer
        try:
            left = writer.flush(self._settings.timeout_s if timeout_s is None else timeout_s)
        except KafkaException as problem:
            raise writer.failure("", problem) from problem
        if failed := writer.undelivered.taken():
            raise not_written(writer.bootstrap, *failed[0])
        if left:
            writer.purge()
            with contextlib.suppress(KafkaException):  # all are given up anyway
                writer.flush(1.0)
            writer.undelivered.taken()
            raise writer.unreachable()

    def close(self, timeout_s: float = 5.0) -> None:
        """Send what is left, for that long at most, and release the connections. Idempotent.

        An owner that needs to know whether records arrived calls ``flush`` first.
        """
        writer, self._open_writer = self._open_writer, None
        if writer is not None:
            with contextlib.suppress(KafkaException):  # it can send nothing more
                writer.flush(timeout_s)


def _look_again(writer: RecordWriter, topic: str, problem: Exception) -> bool:
    """Ask for a topic's partitions if one was unknown: it may have more by now."""
    unknown = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - the library's name
    if not isinstance(problem, KafkaException) or error_of(problem).code() != unknown:
        return False
    with contextlib.suppress(KafkaException):  # the next try reports it
        writer.topics(_LOOK_AGAIN_S, topic)
    writer.serve(_PAUSE_S)
    return True


class TransactionalSender(Sender):
    """A producer whose records count together or not at all.

    The id is fenced: ``start`` ends whatever an earlier producer with it left open.
    """

    _open_writer: TransactionalWriter | None

    def __init__(
        self, settings: KafkaSettings, transactional_id: str, **config: str | float | bool
    ) -> None:
        self._settings = settings
        self._id = transactional_id
        self._config = settings.producer(**config)
        self._open_writer = TransactionalWriter(self._config, transactional_id)
        self._usable = True

    @property
    def _writer(self) -> TransactionalWriter:
        if self._open_writer is None:
            raise SenderClosed
        return self._open_writer

    @property
    def usable(self) -> bool:
        """Whether the last transaction was ended; else ``recover`` takes the id over again."""
        return self._usable

    def start(self) -> None:
        """Take over the transactional id.

        Raises: KafkaUnreachable, KafkaDenied.
        """
        self._step(self._writer.init_transactions)
        self._usable = True

    def reopen(self) -> None:
        """Begin again: a transaction of ours that is still open is committed or aborted for good.

        Raises: KafkaUnreachable, KafkaDenied.
        """
        self._usable = False
        self._writer.purge()
        self._open_writer = TransactionalWriter(self._config, self._id)
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
        self._step(lambda _: self._writer.begin())
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
            self._step(self._writer.commit)
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
            self._writer.abort(self._settings.timeout_s)
        except (KafkaException, ProducerFenced):
            self._usable = False

    def _step(self, call: Callable[[float], None]) -> None:
        retrying(
            lambda left, _tries: call(left),
            bootstrap=self._settings.bootstrap,
            timeout_s=self._settings.timeout_s,
            what="Kafka transaction failed",
        )
