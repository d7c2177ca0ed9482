"""Records into Kafka for the service itself: a sender for one owner, and one with transactions."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ksql.core.errors import KsqlError, ServerError
from ksql.kafka.client_errors import LastError
from ksql.kafka.errors import (
    FENCED,
    KafkaUnreachable,
    ProducerFenced,
    UnknownTopic,
    WriteFailed,
    error_of,
    given_up,
    is_retriable,
    is_unknown_topic,
    retrying,
)
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.timestamp_zero import send_at_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ksql.core.records import Headers
    from ksql.kafka.settings import KafkaSettings

_FULL_WAIT_S: Final = 0.05
_LOOK_AGAIN_S: Final = 5.0


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
