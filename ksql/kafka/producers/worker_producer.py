"""The producer of a worker process: many records in, all of them acknowledged or an error out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from ksql.core.errors import QueryFailed
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.processing_log import SINK
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.timestamp_zero import EpochTooLarge, send_from_epoch

if TYPE_CHECKING:
    from ksql.core.records import OutRecord

Rejected = Callable[[str], None]
"""Called for a record that no retry can deliver (too large), with the reason."""

PARTITIONER: Final = "partitioner"
DEFAULTS: Mapping[str, str | int | bool] = {
    # acks=all and no duplicates or reordering when the client retries by itself
    "enable.idempotence": True,
    # flush() ignores it, so a small batch never waits; a large one fills its requests
    "linger.ms": 20,
    "batch.num.messages": 10_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 131_072,
    # the same partition that a Java client would choose for a key
    PARTITIONER: "murmur2_random",
    "message.timeout.ms": 120_000,
    # how long a topic may stay unknown before that counts as an answer
    "topic.metadata.propagation.max.ms": 5_000,
    "delivery.report.only.error": True,
    "log_level": 0,
}

_EPOCH_RUN: Final = 1000
LARGER: Final = "Raise the topic's max.message.bytes"

BY_KEY: Final = -1
"""The client chooses a record's partition, by its key."""

_FULL_WAIT_S = 0.05
_FLUSH_STEP_S = 5.0
_COUNT_S: Final = 300.0  # as old as a client's own knowledge of a topic may be
_ASK_S: Final = 30.0


class Destination(NamedTuple):
    """Where records go."""

    topic: str
    partition: int

    @property
    def given(self) -> int | None:
        """The partition, unless the client chooses it."""
        return None if self.partition == BY_KEY else self.partition


_TOPIC_BYTES = 1_048_588  # Kafka's default for a topic
BATCH_BYTES: Final = 1_000_000
"""The client's default for the largest batch, and for a record."""
_FRAME_BYTES = 512  # what a batch needs besides its records
_HEADER_BYTES = 61  # how a batch begins
_LEAST_BYTES = 1000  # librdkafka takes no less for a record


def fitting(limit: int | None, *, surely: bool = False) -> dict[str, str]:
    """Return client settings that fit a topic's ``max.message.bytes``.

    The broker measures whole batches and refuses a large one with all that is in it: they must be
    small enough for any but a single record that is itself too large. The client measures records
    without their batch, so that it lets some through which the broker refuses; with ``surely`` it
    rather refuses some that would just have fitted.
    """
    if limit in (None, _TOPIC_BYTES):
        return {}
    batch = max(1, min(BATCH_BYTES, limit - _FRAME_BYTES))
    most = limit - _HEADER_BYTES if surely else limit
    return {"batch.size": str(batch), "message.max.bytes": str(max(_LEAST_BYTES, most))}


def hashes_as_java(config: Mapping[str, str]) -> bool:
    """Return whether a producer of this configuration chooses a key's partition as Java does."""
    return config.get(PARTITIONER, DEFAULTS[PARTITIONER]) in ("murmur2", "murmur2_random")


class DeliveryFailed(QueryFailed):
    """Records were produced that the broker did not acknowledge."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(
            f'cannot write to topic "{topic}"',
            detail=reason,
            hint="Check that the topic exists and that the broker can be reached.",
        )


class RecordRefused(DeliveryFailed):
    """A record that the broker does not take, where the settings do not want it left out."""

    def __init__(self, topic: str, reason: str, remedy: str = LARGER) -> None:
        super().__init__(topic, reason)
        self.hint = (
            f"{remedy}; or set ksql.fail.on.production.error to false, "
            "then such records are logged and left out."
        )
        self.entry = (SINK, reason, None)


class WorkerProducer:
    """Sends encoded records; nothing counts before ``flush`` has returned.

    Those at the epoch go by a slower way. Records after one, up to a run's length, go with it,
    which keeps the order: where that way chooses the same partitions.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self._failed: list[tuple[str, str]] = []
        self._counts: dict[str, tuple[int, float]] = {}
        self._ids: dict[str, str] = {}
        self._rejected: list[str] = []
        self._config = dict(config)
        self._epoch_run = _EPOCH_RUN if hashes_as_java(config) else 1
        self._producer = Producer(
            {**DEFAULTS, **config, "on_delivery": self._report}, logger=CLIENT_LOG
        )

    def send(
        self,
        topic: str,
        records: Iterable[OutRecord],
        rejected: Rejected,
        partition: int = BY_KEY,
    ) -> int:
        """Hand over the records; returns how many were accepted."""
        produce = self._producer.produce
        destination = Destination(topic, partition)
        count = 0
        left = iter(records)
        for key, value, timestamp, headers in left:
            if timestamp == 0:
                behind = itertools.islice(left, self._epoch_run - 1)
                run = [(key, value, timestamp, headers), *behind]
                count += self._from_epoch(destination, run, rejected)
                continue
            try:
                if headers is None:  # by position: names would cost a quarter of the call
                    produce(topic, value, key, partition, None, None, timestamp)
                else:
                    produce(
                        topic, value, key, partition, timestamp=timestamp, headers=list(headers)
                    )
            except (BufferError, KafkaException) as problem:
                if not self._retry(
                    problem, destination, (key, value, timestamp, headers), rejected
                ):
                    continue
            count += 1
        self._producer.poll(0)
        return count

    def expect(self, topic: str, topic_id: str) -> None:
        """Write to the topic with that id: if it is another than before, look at it again first.

        The producer outlives topics. Without a look it would keep the partitions of a deleted one
        for minutes, or that there was none.
        """
        if not topic_id or self._ids.get(topic) == topic_id:
            return
        try:
            self._counts[topic] = self._counted(topic), time.monotonic() + _COUNT_S
        except DeliveryFailed:  # the write itself fails then
            return
        if topic in self._ids:
            timestamp_zero.renew()
        self._ids[topic] = topic_id

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; it is asked for as often as a client asks.

        Raises:
            DeliveryFailed: The broker does not say.
        """
        count, until = self._counts.get(topic, (0, 0.0))
        if time.monotonic() >= until:
            count = self._counted(topic)
            self._counts[topic] = count, time.monotonic() + _COUNT_S
        return count

    def _counted(self, topic: str) -> int:
        try:
            metadata = self._producer.list_topics(topic, _ASK_S).topics[topic]
        except KafkaException as problem:
            raise DeliveryFailed(topic, problem.args[0].str()) from problem
        if metadata.error is not None or not metadata.partitions:
            raise DeliveryFailed(topic, str(metadata.error))
        return len(metadata.partitions)

    def _from_epoch(
        self, destination: Destination, run: Sequence[OutRecord], rejected: Rejected
    ) -> int:
        """Write them after what is under way, to keep the order; return how many were taken."""
        if len(self._producer):
            self._producer.flush()
        outcomes = send_from_epoch(self._config, destination.topic, run, destination.given)
        refused = [outcome for outcome in outcomes if isinstance(outcome, EpochTooLarge)]
        for error in refused:
            rejected(error.detail)
        return len(run) - len(refused)

    def _retry(
        self, problem: Exception, destination: Destination, record: OutRecord, rejected: Rejected
    ) -> bool:
        """Wait for room in the queue; False if the record can never be sent."""
        key, value, timestamp, headers = record
        topic, partition = destination
        while isinstance(problem, BufferError):
            self._producer.poll(_FULL_WAIT_S)
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=timestamp, headers=list(headers or ())
                )
            except (BufferError, KafkaException) as again:
                problem = again
            else:
                return True
        error = problem.args[0]
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            raise DeliveryFailed(topic, error.str()) from problem
        rejected(error.str())
        return False

    def flush(self, rejected: Rejected) -> None:
        """Wait until every record is acknowledged; do not raise a failure a second time.

        ``rejected`` may raise. The producer outlives the task and serves other queries.

        Raises:
            DeliveryFailed: A record was not; the caller must not continue as if it had been.
        """
        while self._producer.flush(_FLUSH_STEP_S):
            if self._failed:
                break
        refused, self._rejected = self._rejected, []
        failed, self._failed = self._failed, []
        for message in refused:
            rejected(message)
        if failed:
            raise DeliveryFailed(*failed[0])

    def _report(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            return
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._rejected.append(error.str())
        else:
            self._failed.append((message.topic(), error.str()))


_cache: dict[tuple[tuple[str, str], ...], WorkerProducer] = {}
_cache_lock = Lock()


def worker_producer(config: Mapping[str, str]) -> WorkerProducer:
    """Return the producer of this process for that configuration; opened at its first use."""
    key = tuple(sorted(config.items()))
    with _cache_lock:
        if (producer := _cache.get(key)) is None:
            producer = _cache[key] = WorkerProducer(config)
        return producer
