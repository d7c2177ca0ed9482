"""Sends single records for many threads at once; each learns the outcome of its own."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from ksql.core import Written
from ksql.core.process import in_background
from ksql.kafka.admin import Admin, Identity
from ksql.kafka.errors import UnknownTopic, WriteFailed, error_of, is_unknown_topic
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.limits import TopicLimits, fitting
from ksql.kafka.producers.record_writer import RecordWriter, is_too_large, not_written
from ksql.kafka.producers.timestamp_zero import EpochTooLarge, send_at_epoch
from ksql.kafka.topic_watch import Identities, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ksql.core import Headers
    from ksql.kafka.settings import Config, KafkaSettings

Fit = tuple[tuple[str, str], ...]
"""What a topic asks of its producer, as client settings."""

_POLL_S: Final = 0.5
_PAUSE_S: Final = 0.02
_CLOSE_S: Final = 5.0
_ASK_S: Final = 2.0
_SLACK_S: Final = 10.0  # what the client may need to notice that a record's time is over
_TIMEOUT: Final = "delivery.timeout.ms"
_FOR_OTHERS: Final = (
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.INVALID_RECORD,
    KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001 - the library's name
)
"""Errors of a whole batch, though only one of its records need be the reason."""
_STALE: Final = (
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the library's name
    KafkaError._DESTROY,  # noqa: SLF001 - the client drops a partition with what waits for it
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""Errors of a record that has gone to a partition of a topic that was deleted."""
_UNUSED_LOOKS: Final = 60
_ALONE: Final = ("batch.num.messages", "1")
_DEFAULTS: Final[Config] = {
    # who waits for a single record gains nothing from company: what comes while a request is under
    # way leaves together with the next one
    "linger.ms": 0,
    # how long a topic may stay unknown before that counts as an answer
    "topic.metadata.propagation.max.ms": 5_000,
    "delivery.report.only.error": False,
}


_NOWHERE: Final = Identity("", 0)


class _Record(NamedTuple):
    """A record as it was handed over."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers | None


class _Topic:
    """A topic as the producers know it; ``used`` is the look before the last record."""

    __slots__ = ("identity", "limits", "used")

    def __init__(self, limits: TopicLimits, identity: Identity, used: int) -> None:
        self.limits = limits
        self.identity = identity
        self.used = used


class SharedSender:
    """One idempotent producer for all who write single records; safe for any number of threads.

    ``begin`` hands a record over, ``wait`` of what it returns waits for that record alone. A
    producer that can never write again is replaced by a new one. Topics that take less than others
    have a producer whose batches are small enough: a broker refuses whole batches, with all that
    is in them.

    A topic that was deleted and created again has other partitions, of which a producer learns
    minutes later. ``renew`` and a ``TopicWatch`` have them looked at.
    """

    def __init__(self, settings: KafkaSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._admin = Admin(settings)
        config = settings.producer()
        self._config = {
            **config,
            **_DEFAULTS,
            _TIMEOUT: config.get(_TIMEOUT, int(settings.timeout_s * 1000)),
        }
        self._patience_s = int(self._config[_TIMEOUT]) / 1000 + _SLACK_S
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._looks = 0
        self._renewals = 0
        self._lines: dict[Fit, _ProducerThread] = {}

    def begin(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers | None = None,
    ) -> DeliveryFuture | Delivered:
        """Hand a record over; waits while the queue is full.

        Records of one thread keep their order, unless one was refused for another in its batch.

        Raises: WriteFailed for one that can never be sent, KafkaUnreachable; for the time 0, which
            is waited for here, also UnknownTopic.
        """
        self._check(topic, key, timestamp)
        record = _Record(topic, key, value, timestamp or 0, headers)
        send = self._at_epoch if timestamp == 0 else self._begin
        return send(record, self._fit(topic))

    def renew(self) -> None:
        """Look at every topic again before its next record: topics may have been recreated."""
        with self._lock:
            self._renewals += 1
            self._topics.clear()

    def watched(self) -> Watched:
        """Return the topics to be watched: one that others recreate is looked at again then.

        A topic without records for a minute is forgotten.
        """
        with self._lock:
            self._looks += 1
            oldest = self._looks - _UNUSED_LOOKS
            used = {name: known for name, known in self._topics.items() if known.used > oldest}
            self._topics = used
            then = {name: known.identity for name, known in used.items()}
        return Watched(then, partial(self._forget_recreated, then))

    def _forget_recreated(self, then: Identities, now: Identities | None) -> None:
        if now is None:
            return
        with self._lock:
            for name, identity in then.items():
                known = self._topics.get(name)
                if known is not None and known.identity == identity != now.get(name):
                    del self._topics[name]

    def _check(self, topic: str, key: bytes | None, timestamp: int | None) -> None:
        """Look whether the topic takes it, by limits that may be old; if not, by those of now.

        Raises: WriteFailed.
        """
        now_ms = int(self._clock() * 1000)
        time_ms = now_ms if timestamp is None else timestamp
        if self._known(topic).limits.refusal(key, time_ms, now_ms) is None:
            return
        self._forget(topic)
        refusal = self._known(topic).limits.refusal(key, time_ms, now_ms)
        if refusal is not None:
            raise WriteFailed(topic, refusal.reason, f"{refusal.remedy}.")

    def _begin(self, record: _Record, fit: Fit, *, again: bool = False) -> DeliveryFuture:
        failed = partial(self._failed, record, fit, again=again)
        delivery = DeliveryFuture(self._patience_s, failed, partial(self._end, record.topic))
        end = time.monotonic() + self._settings.timeout_s
        while True:
            line = self._line(fit)
            try:
                line.writer.hand_over(
                    record.topic,
                    record.value,
                    record.key,
                    timestamp=record.timestamp,
                    headers=record.headers,
                    wait_s=self._settings.timeout_s,
                    on_delivery=delivery.report,
                )
            except KafkaException as problem:
                error, in_time = error_of(problem), time.monotonic() < end
                if is_too_large(error):
                    newer = self._newer(record.topic, fit)
                    if newer is not None:
                        return self._begin(record, newer)
                self._check_usable(line, record.topic, error, in_time=in_time)
            else:
                return delivery

    def close(self) -> None:
        """Send what is left, for some seconds at most."""
        with self._lock:
            lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            line.close()
        self._admin.close()

    def _check_usable(
        self, line: _ProducerThread, topic: str, error: KafkaError, *, in_time: bool
    ) -> None:
        """Make sure that trying again may help after a record could not even be handed over."""
        if in_time and line.broken(error):
            return
        if in_time and is_unknown_topic(error) and self._missing(topic) is None:
            time.sleep(_PAUSE_S)  # it was created again; the request made the client notice
            return
        raise not_written(self._settings.bootstrap, topic, error)

    def _line(self, fit: Fit) -> _ProducerThread:
        with self._lock:
            line = self._lines.get(fit)
            if line is None or line.fatal:
                if line is not None:
                    line.retire()
                line = self._lines[fit] = _ProducerThread({**self._config, **dict(fit)})
            return line

    def _fit(self, topic: str) -> Fit:
        """Return the topic's demands on a producer."""
        return tuple(sorted(fitting(self._known(topic).limits.batch_bytes).items()))

    def _known(self, topic: str) -> _Topic:
        """Return the topic; remembered until a record is refused or it may be another."""
        with self._lock:
            known = self._topics.get(topic)
            if known is not None:
                known.used = self._looks
                return known
            looks, renewals, lines = self._looks, self._renewals, list(self._lines.values())
        identity = self._admin.identities([topic]).get(topic)
        known = _Topic(self._admin.limits(topic), identity or _NOWHERE, looks)
        if identity is not None:
            self._learn(topic, lines)
            with self._lock:
                if renewals == self._renewals:
                    self._topics[topic] = known
        return known

    def _learn(self, topic: str, lines: Iterable[_ProducerThread]) -> None:
        """Have the producers ask for the topic's partitions.

        Raises: KafkaUnreachable and the like.
        """
        for line in lines:
            try:
                line.writer.topics(self._settings.timeout_s, topic)
            except KafkaException as problem:
                raise not_written(self._settings.bootstrap, topic, error_of(problem)) from problem
        timestamp_zero.renew()

    def _forget(self, topic: str) -> None:
        with self._lock:
            self._topics.pop(topic, None)

    def _newer(self, topic: str, fit: Fit) -> Fit | None:
        """Return the demands of the topic if they have changed."""
        self._forget(topic)
        newer = self._fit(topic)
        return None if newer == fit else newer

    def _at_epoch(self, record: _Record, fit: Fit) -> Delivered:
        topic = record.topic
        if missing := self._missing(topic):  # the other library would look for it a whole minute
            raise missing
        config = self._settings.producer(**dict(fit))
        try:
            return Delivered(send_at_epoch(config, topic, record.key, record.value, record.headers))
        except EpochTooLarge:
            newer = self._newer(topic, fit)
            if newer is None:
                raise
            return self._at_epoch(record, newer)
        except WriteFailed:
            self._forget(topic)
            self._check(topic, record.key, 0)
            raise

    def _failed(self, record: _Record, fit: Fit, error: KafkaError, *, again: bool) -> Written:
        """Send a record again that failed with its batch, or for a partition that is gone.

        Raises: for any other the reason that it failed.
        """
        if is_too_large(error):
            newer = self._newer(record.topic, fit)
            if newer is not None:
                return self._begin(record, newer).wait()
        elif error.code() in _FOR_OTHERS and _ALONE not in fit:
            self._forget(record.topic)
            self._check(record.topic, record.key, record.timestamp or None)
            return self._begin(record, (*fit, _ALONE)).wait()
        elif error.code() in _STALE and not again:
            self._forget(record.topic)
            return self._begin(record, self._fit(record.topic), again=True).wait()
        raise self._missing(record.topic) or not_written(
            self._settings.bootstrap, record.topic, error
        )

    def _end(self, topic: str, partition: int) -> int:
        """Return the end of a partition: an offset after a record of which none was reported."""
        return self._admin.end_offsets([topic], committed=False)[topic, partition]

    def _missing(self, topic: str) -> UnknownTopic | None:
        """Return the error of a missing topic; None if it is there, or Kafka does not answer."""
        try:
            known = self._line(self._fit(topic)).writer.topics(_ASK_S)
        except KafkaException:
            return None  # then it is Kafka
        return None if topic in known else UnknownTopic(topic)


class DeliveryFuture:
    """A record under way."""

    def __init__(
        self,
        patience_s: float,
        failed: Callable[[KafkaError], Written],
        end: Callable[[int], int],
    ) -> None:
        self._patience_s = patience_s
        self._failed = failed
        self._end = end
        self._settled = threading.Event()
        self._error: KafkaError | None = None
        self._place: tuple[str, int, int] = "", 0, -1

    def wait(self) -> Written:
        """Return, once this record is acknowledged, where it is.

        Raises: WriteFailed, UnknownTopic, KafkaUnreachable; of these only the last leaves it open
            whether the record was written.
        """
        in_time = self._settled.wait(self._patience_s)
        error = self._error if in_time else KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001
        if error is not None:
            return self._failed(error)
        topic, partition, offset = self._place
        # one that was there already, when it was sent a second time, is reported without an offset
        return Written(topic, partition, self._end(partition) if offset < 0 else offset + 1)

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Take the client's report on the outcome of a record."""
        self._error = error
        if error is None:
            offset = message.offset()
            self._place = (
                message.topic() or "",
                message.partition() or 0,
                -1 if offset is None else offset,
            )
        self._settled.set()


class Delivered:
    """A record that was waited for already."""

    def __init__(self, written: Written) -> None:
        self._written = written

    def wait(self) -> Written:
        return self._written


class _ProducerThread:
    """A producer and the thread that hands out its answers."""

    def __init__(self, config: Config) -> None:
        self._open = True
        self.writer = RecordWriter(config)
        self._thread = in_background("kafka-sender", self._serve)

    @property
    def fatal(self) -> bool:
        """Whether it can never write again."""
        return self.writer.errors.fatal

    def broken(self, error: KafkaError) -> bool:
        """Return whether this error, or an earlier one, means that it can never write again."""
        self.writer.errors.note(error)
        return self.fatal

    def retire(self) -> None:
        """Take no more records; those under way are still answered."""
        self._open = False

    def close(self) -> None:
        """Send the remaining records, for some seconds at most; report the rest as unsent."""
        with suppress(KafkaException):  # it can send nothing more
            self.writer.flush(_CLOSE_S)
        self.writer.purge()
        self.retire()
        self._thread.join()

    def _serve(self) -> None:
        """Hand out answers to the end; after a fatal error each record that is left fails."""
        while self._open or self.writer.under_way():
            with suppress(KafkaException):  # the writer keeps it: see ``fatal``
                self.writer.serve(_POLL_S)
