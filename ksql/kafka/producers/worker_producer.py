"""The producer of a worker process: many records in, all of them acknowledged or an error out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException

from ksql.core import QueryFailed
from ksql.kafka.errors import error_of
from ksql.kafka.processing_log import SINK
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.record_writer import BY_KEY, RecordWriter, hashes_as_java, is_too_large
from ksql.kafka.producers.timestamp_zero import EpochTooLarge, send_from_epoch

if TYPE_CHECKING:
    from ksql.core import OutRecord

Rejected = Callable[[str], None]
"""Called for a record that no retry can deliver (too large), with the reason."""

BATCHES: Mapping[str, str | int | bool] = {
    # flush() ignores it, so a small batch never waits; a large one fills its requests
    "linger.ms": 20,
    "batch.num.messages": 10_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 131_072,
    "message.timeout.ms": 120_000,
    # how long a topic may stay unknown before that counts as an answer
    "topic.metadata.propagation.max.ms": 5_000,
}

_EPOCH_RUN: Final = 1000
LARGER: Final = "Raise the topic's max.message.bytes"

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

    def __init__(
        self, config: Mapping[str, str], writer: RecordWriter | None = None, topic: str = ""
    ) -> None:
        self._counts: dict[str, tuple[int, float]] = {}
        self._ids: dict[str, str] = {}
        self._config = dict(config)
        self._topic = topic
        self._epoch_run = _EPOCH_RUN if hashes_as_java(config) else 1
        self._writer = RecordWriter({**BATCHES, **config}) if writer is None else writer

    def send(
        self,
        topic: str,
        records: Iterable[OutRecord],
        rejected: Rejected,
        partition: int = BY_KEY,
    ) -> int:
        """Hand over the records; returns how many were accepted."""
        produce = self._writer.produce
        self._topic = topic
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
            except BufferError:
                if not self._waited(destination, (key, value, timestamp, headers), rejected):
                    continue
            except KafkaException as problem:
                self._check_size(topic, problem, rejected)
                continue
            count += 1
        try:
            self._writer.serve()
        except KafkaException as problem:
            raise DeliveryFailed(topic, error_of(problem).str()) from problem
        return count

    @property
    def fatal(self) -> bool:
        """Whether it can never write again."""
        return self._writer.errors.fatal

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
            metadata = self._writer.topics(_ASK_S, topic)[topic]
        except KafkaException as problem:
            raise DeliveryFailed(topic, error_of(problem).str()) from problem
        if metadata.error is not None or not metadata.partitions:
            raise DeliveryFailed(topic, str(metadata.error))
        return len(metadata.partitions)

    def _from_epoch(
        self, destination: Destination, run: Sequence[OutRecord], rejected: Rejected
    ) -> int:
        """Write them after what is under way, to keep the order; return how many were taken."""
        while self._writer.under_way():
            self._still_missing()
        outcomes = send_from_epoch(self._config, destination.topic, run, destination.given)
        refused = [outcome for outcome in outcomes if isinstance(outcome, EpochTooLarge)]
        for error in refused:
            rejected(error.detail)
        return len(run) - len(refused)

    def _still_missing(self) -> int:
        """Wait some seconds for answers; return how many records have none."""
        try:
            return self._writer.flush(_FLUSH_STEP_S)
        except KafkaException as problem:
            raise DeliveryFailed(self._topic, error_of(problem).str()) from problem

    def _waited(self, destination: Destination, record: OutRecord, rejected: Rejected) -> bool:
        """Wait for room in the queue; False if the record can never be sent."""
        key, value, timestamp, headers = record
        topic, partition = destination
        try:
            self._writer.hand_over(topic, value, key, partition, timestamp, headers)
        except KafkaException as problem:
            self._check_size(topic, problem, rejected)
            return False
        return True

    def _check_size(self, topic: str, problem: KafkaException, rejected: Rejected) -> None:
        """Leave a record out that is too large.

        Raises: DeliveryFailed for one that cannot be sent for another reason.
        """
        error = error_of(problem)
        self._writer.errors.note(error)
        if not is_too_large(error):
            raise DeliveryFailed(topic, error.str()) from problem
        rejected(error.str())

    def flush(self, rejected: Rejected) -> None:
        """Wait until every record is acknowledged; do not raise a failure a second time.

        ``rejected`` may raise. The producer outlives the task and serves other queries.

        Raises:
            DeliveryFailed: A record was not; the caller must not continue as if it had been.
        """
        undelivered = self._writer.undelivered
        while self._still_missing():
            if undelivered.any_but_large():
                break
        reports = undelivered.taken()
        for _, error in reports:
            if is_too_large(error):
                rejected(error.str())
        for topic, error in reports:
            if not is_too_large(error):
                raise DeliveryFailed(topic, error.str())


_cache: dict[tuple[tuple[str, str], ...], WorkerProducer] = {}
_cache_lock = Lock()


def worker_producer(config: Mapping[str, str]) -> WorkerProducer:
    """Return the producer of this process for that configuration; opened at its first use.

    One that can never write again is replaced: the process outlives it, and runs the batch again.
    """
    key = tuple(sorted(config.items()))
    with _cache_lock:
        producer = _cache.get(key)
        if producer is None or producer.fatal:
            producer = _cache[key] = WorkerProducer(config)
        return producer
