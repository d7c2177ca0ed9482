"""A producer of Kafka's client library, as all writers of the service use it: the only one.

It is made here, with the settings that all have in common. It also knows the library's answers: a
full queue, a record that failed, a producer that can never write again, one that is fenced.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ksql.core import ServerError
from ksql.kafka import errors as err
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.core import Headers, KsqlError

PARTITIONER: Final = "partitioner"
DEFAULTS: Final[Mapping[str, str | bool | int]] = {
    # acks=all and no duplicates or reordering when the client retries by itself
    "enable.idempotence": True,
    # the same partition that a Java client would choose for a key
    PARTITIONER: "murmur2_random",
    # a record that arrived is reported only to who asks for each
    "delivery.report.only.error": True,
    "log_level": 0,
}
BY_KEY: Final = -1
"""The client chooses a record's partition, by its key."""

_FULL_WAIT_S: Final = 0.05
_FATAL: Final = KafkaError._FATAL  # noqa: SLF001 - the library's name
_ENDED: Final = KafkaError(_FATAL, "the client can never write again", fatal=True)

T = TypeVar("T")


def hashes_as_java(config: Mapping[str, str]) -> bool:
    """Return whether a producer of this configuration chooses a key's partition as Java does."""
    return config.get(PARTITIONER, DEFAULTS[PARTITIONER]) in ("murmur2", "murmur2_random")


class CommitInDoubt(ServerError):
    """Kafka did not say whether a transaction counts; only the topic itself shows it."""

    def __init__(self, transactional_id: str, reason: str) -> None:
        super().__init__(
            f'it is not known whether the transaction of "{transactional_id}" was committed',
            detail=reason,
        )


class ClientErrors(err.LastError):
    """The last error of a producer, and whether it can never write again."""

    client = "producer"

    def __init__(self) -> None:
        super().__init__()
        self.fatal = False

    def note(self, error: KafkaError) -> None:
        super().note(error)
        self.fatal = self.fatal or error.fatal() or error.code() == _FATAL

    def ending(self, problem: KafkaException | SystemError) -> KafkaException:
        """Note and return the fatal error behind what a call of the library raised.

        The library raises it from the call that hands out answers. If it has other answers to hand
        out then, it raises a SystemError instead, with or without the error as its cause.
        """
        cause = problem if isinstance(problem, KafkaException) else problem.__cause__
        known = cause if isinstance(cause, KafkaException) else KafkaException(_ENDED)
        self.note(err.error_of(known))
        self.fatal = True
        return known


class Undelivered:
    """The records that were not delivered, with their topics.

    Apart from the writer, as its producer keeps the callback: see ``LastError``.
    """

    def __init__(self) -> None:
        self._failed: list[tuple[str, KafkaError]] = []

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Take what the producer says of a record."""
        if error is not None:
            self._failed.append((message.topic() or "", error))

    def any_but_large(self) -> bool:
        """Return whether any failed for another reason than its size."""
        return any(not is_too_large(error) for _, error in self._failed)

    def taken(self) -> list[tuple[str, KafkaError]]:
        """Return them, and forget them."""
        failed, self._failed = self._failed, []
        return failed


class RecordWriter:
    """A producer; what it says of itself are errors of the library, unless a method says more.

    ``produce`` is the library's own method: many records cost nothing here.
    """

    def __init__(self, config: Mapping[str, str | int | float | bool]) -> None:
        self.errors = ClientErrors()
        self.undelivered = Undelivered()
        self.bootstrap = str(config.get("bootstrap.servers", ""))
        self._client = Producer(
            {
                **DEFAULTS,
                **config,
                "error_cb": self.errors.note,
                "on_delivery": self.undelivered.report,
            },
            logger=CLIENT_LOG,
        )
        self.produce = self._client.produce

    def hand_over(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = BY_KEY,
        timestamp: int = 0,
        headers: Headers | None = None,
        *,
        wait_s: float | None = None,
        **more: Any,
    ) -> None:
        """Produce a record; wait while the queue is full, without ``wait_s`` as long as it takes.

        Raises: KafkaUnreachable when the time is over, KafkaException for one that cannot be sent.
        """
        end = None
        while True:
            try:
                self.produce(
                    topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp,
                    headers=list(headers or ()),
                    **more,
                )
            except BufferError:
                now = time.monotonic()
                if end is None and wait_s is not None:
                    end = now + wait_s
                if end is not None and now > end:
                    raise self.unreachable() from None
                self.serve(_FULL_WAIT_S)
            else:
                return

    def serve(self, limit_s: float = 0.0) -> None:
        """Hand out what the producer has to say, and wait so long for something.

        Raises: KafkaException if it can never write again.
        """
        self._answered(self._client.poll, limit_s)

    def flush(self, limit_s: float) -> int:
        """Wait for the answers to all records; return how many are still missing then.

        Raises: KafkaException if it can never write again.
        """
        return self._answered(self._client.flush, limit_s)

    def purge(self) -> None:
        """Give up the records that are under way; they are reported as failed."""
        self._client.purge()

    def topics(self, limit_s: float, topic: str | None = None) -> Mapping[str, Any]:
        """Ask for all topics or one, refresh what the producer knows of them, and return them."""
        one = {} if topic is None else {"topic": topic}
        topics: Mapping[str, Any] = self._client.list_topics(**one, timeout=limit_s).topics
        return topics

    def under_way(self) -> int:
        """Return how many records have no answer yet."""
        return len(self._client)

    def unreachable(self) -> err.KafkaUnreachable:
        """Return the error of having waited too long, with the last error of the connections."""
        return err.KafkaUnreachable(self.bootstrap, self.errors.text)

    def failure(self, topic: str, problem: KafkaException) -> KsqlError:
        """Return our error for one that says that a record can never be sent."""
        return err.WriteFailed(topic, err.error_of(problem).str())

    def _answered(self, call: Callable[[float], T], limit_s: float) -> T:
        """Make a call that hands out answers: it fails only if the producer has come to its end."""
        try:
            return call(limit_s)
        except (KafkaException, SystemError) as problem:
            raise self.errors.ending(problem) from problem


class TransactionalWriter(RecordWriter):
    """A producer whose records count together or not at all.

    The id is fenced: ``init_transactions`` ends whatever an earlier producer with it left open,
    which can write no more. Its calls raise ProducerFenced then, and KafkaException for all else.

    Source: KIP-98.
    """

    def __init__(
        self, config: Mapping[str, str | int | float | bool], transactional_id: str
    ) -> None:
        super().__init__({**config, "transactional.id": transactional_id})
        self.transactional_id = transactional_id

    def init_transactions(self, limit_s: float) -> None:
        """Take over the transactional id."""
        self._call(self._client.init_transactions, limit_s)

    def begin(self) -> None:
        self._call(self._client.begin_transaction)

    def add_offsets(self, offsets: list[Any], group: Any, limit_s: float) -> None:
        """Have a consumer group's offsets count with the records."""
        self._call(self._client.send_offsets_to_transaction, offsets, group, limit_s)

    def commit(self, limit_s: float) -> None:
        """Commit the open transaction; all of its records have to arrive."""
        self._call(self._client.commit_transaction, limit_s)

    def abort(self, limit_s: float) -> None:
        """Give the open transaction up, and forget which of its records failed."""
        try:
            self._call(self._client.abort_transaction, limit_s)
        finally:
            self.undelivered.taken()

    def failure(self, topic: str, problem: KafkaException) -> KsqlError:
        if is_fenced(problem):
            return err.ProducerFenced(self.transactional_id)
        return super().failure(topic, problem)

    def _call(self, call: Callable[..., object], *args: object) -> None:
        try:
            call(*args)
        except SystemError as problem:
            raise self.errors.ending(problem) from problem
        except KafkaException as problem:
            if is_fenced(problem):
                raise err.ProducerFenced(self.transactional_id) from problem
            raise


def not_written(bootstrap: str, topic: str, error: KafkaError) -> KsqlError:
    """Return why a record was not acknowledged."""
    if err.is_retriable(error):
        return err.given_up(bootstrap, error)
    if err.is_unknown_topic(error):
        return err.UnknownTopic(topic)
    return err.WriteFailed(topic, error.str())


def is_fenced(problem: KafkaException) -> bool:
    """Return whether another producer has taken over the transactional id."""
    return err.error_of(problem).code() in err.FENCED


def is_too_large(error: KafkaError) -> bool:
    """Return whether the client or the broker refused a record for its size."""
    return error.code() == KafkaError.MSG_SIZE_TOO_LARGE
