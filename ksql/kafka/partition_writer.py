"""Writes records into partitions of a topic; by a transactional id those of one count together."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.kafka.producers.limits import TopicLimits, fitting
from ksql.kafka.producers.task_transactions import Transactions
from ksql.kafka.producers.worker_producer import (
    LARGER,
    DeliveryFailed,
    RecordRefused,
    WorkerProducer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.core import OutRecord

_AT_ONCE: Final = 512  # records between two looks at the right to write


def always() -> None:
    """Return: there is no right to ask for."""


class WriteOptions(NamedTuple):
    """How records are written, by this process or another one.

    ``config`` are the producer's settings (librdkafka names). With a ``transactional_id`` those of
    a partition count together. ``now_ms`` is the latest time that deletions get. ``may_write``
    returns while the right to write holds, else it raises. A record that the topic does not take
    is an error if it is ``strict``, and is left out otherwise.
    """

    config: Mapping[str, str]
    transactional_id: str | None
    now_ms: int
    may_write: Callable[[], None] = always
    strict: bool = True

    def deletion_ms(self, latest_ms: int, limits: TopicLimits) -> int:
        """Return the time of deletions: that of the latest record, but not after ``now_ms``.

        It is the present if the topic does not take such a time any more.
        """
        time_ms, present_ms = min(latest_ms, self.now_ms), _present_ms()
        return time_ms if limits.refusal(b"", time_ms, present_ms) is None else present_ms


def _present_ms() -> int:
    """Return the time by which a topic takes or refuses records."""
    return int(time.time() * 1000)


class PartitionWriter:
    """Writes records of partitions; a producer is opened for the first, or to take over."""

    def __init__(self, topic: str, writing: WriteOptions, limits: TopicLimits) -> None:
        fitted = fitting(limits.batch_bytes, surely=writing.transactional_id is not None)
        self._topic = topic
        self._writing = writing
        self._limits = limits
        self._config = fitted | dict(writing.config)
        self._producer: WorkerProducer | None = None
        self.refused: list[str] = []
        """Why the topic did not take records that were left out."""

    def init_transactions(self) -> None:
        """End the open transaction of an earlier writer of the id, which writes no more."""
        if self._writing.transactional_id is not None:
            self._writing.may_write()
            self._opened()

    def write(self, partition: int, records: Sequence[OutRecord]) -> None:
        """Write them, and wait until they count."""
        if not records:
            return
        self._writing.may_write()
        producer = self._opened()
        if not isinstance(producer, Transactions):
            self._send(producer, partition, records)
            producer.flush(self._refused)
            return
        producer.begin_transaction()
        try:
            self._send(producer, partition, records)
            producer.commit(self._refused)
        except BaseException:
            with suppress(DeliveryFailed):  # the next producer of this id ends it
                producer.abort()
            raise

    def _send(self, producer: WorkerProducer, partition: int, records: Sequence[OutRecord]) -> None:
        for start in range(0, len(records), _AT_ONCE):
            self._writing.may_write()
            some = list(records[start : start + _AT_ONCE])
            taken = self._limits.accepted(some, _present_ms(), self._refused)
            producer.send(self._topic, taken, self._refused, partition)
        self._writing.may_write()

    def _opened(self) -> WorkerProducer:
        if self._producer is None:
            name = self._writing.transactional_id
            if name is None:
                self._producer = WorkerProducer(self._config)
            else:
                self._producer = transactions = Transactions(self._config, name, self._topic)
                transactions.init_transactions()
        return self._producer

    def _refused(self, reason: str, remedy: str = LARGER) -> None:
        if self._writing.strict:
            raise RecordRefused(self._topic, reason, remedy)
        self.refused.append(reason)
