"""A Kafka transaction per task and micro-batch, with calls that end and one process per task.

The batch's number is kept as the offset of a consumer group of the task's own. So a batch that is
run again, by any worker, finds that it has been written. A task keeps its transactional id: opening
it again aborts what a dead predecessor left open and fences a living one.

Opening costs about a tenth of a second, so a worker keeps its producers. Another worker may have
taken the id over meanwhile. Those of one machine notice by a lease, a small file; between
machines the first call of a transaction, which writes the batch's number, fails.

Source: KIP-98 and KIP-447.

Each call of Kafka's client ends in time, even if the client exceeds its own time limit.

A small file names the process of this machine that writes for a task. Without it, a producer whose
transactional id was taken would learn so from the broker: a fatal error that its library logs.
Nothing else depends on the file: the broker still fences a process that holds a stale turn.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import uuid
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ksql.core.process import call_within
from ksql.kafka.errors import ProducerFenced, error_of, is_retriable
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.record_writer import TransactionalWriter
from ksql.kafka.producers.worker_producer import (
    BATCHES,
    DeliveryFailed,
    Destination,
    Rejected,
    WorkerProducer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.core import OutRecord


T = TypeVar("T")

_CALL_S: Final = 30.0
_AFTER_EPOCH_MS: Final = 1
_KEPT_PRODUCERS: Final = 16
_AGAIN_S: Final = 0.1
_TIMEOUT_MS: Final = 300_000  # an abandoned transaction hides later records no longer than this


class Transactions(WorkerProducer):
    """Writes the records of one transaction after another; ``topic`` is named in its errors."""

    def __init__(self, config: Mapping[str, str], transactional_id: str, topic: str) -> None:
        self.moved = 0
        """Records of the open transaction that were given the time 1 instead of 0."""
        timeout = {"transaction.timeout.ms": str(_TIMEOUT_MS)}
        self._transaction = TransactionalWriter({**BATCHES, **timeout, **config}, transactional_id)
        super().__init__(config, self._transaction, topic)
        self._epoch_run = 1  # all go the same way here

    def init_transactions(self) -> None:
        """Fence the holder of the id, and abort what it has left open.

        Raises:
            DeliveryFailed: The broker does not answer.
        """
        self._call(self._transaction.init_transactions)

    def begin_transaction(self) -> None:
        """Start a transaction.

        Raises:
            DeliveryFailed: Another producer has taken over, or the broker does not answer.
        """
        self.moved = 0
        try:
            self._transaction.begin()
        except (ProducerFenced, KafkaException) as problem:
            raise self._failure(problem) from problem

    def commit(self, rejected: Rejected) -> None:
        """Make the records count.

        Raises:
            DeliveryFailed: They do not, and must be written again.
        """
        refused: list[str] = []
        self.flush(refused.append)
        for message in refused:
            rejected(message)
        if refused:  # a transaction with a hole in it cannot be committed
            raise LimitLowered(self._topic, refused[0])
        self._call(self._transaction.commit)

    def abort(self) -> None:
        """Give the open transaction up.

        Raises:
            DeliveryFailed: The broker does not answer, or ends it when its time is over.
        """
        self._call(self._transaction.abort)

    def _from_epoch(
        self, destination: Destination, run: Sequence[OutRecord], rejected: Rejected
    ) -> int:
        """Write it a millisecond later: the client that can write 0 knows no transaction."""
        later = [(key, value, _AFTER_EPOCH_MS, headers) for key, value, _, headers in run]
        taken = self.send(destination.topic, later, rejected, destination.partition)
        self.moved += taken
        return taken

    def _call(self, call: Callable[[float], None]) -> None:
        try:
            _again(call)
        except (ProducerFenced, KafkaException) as problem:
            raise self._failure(problem) from problem

    def _failure(self, problem: ProducerFenced | KafkaException) -> DeliveryFailed:
        if isinstance(problem, KafkaException):
            return DeliveryFailed(self._topic, error_of(problem).str())
        return TakenOver(self._topic, _said(problem))


class TaskTransactions(Transactions):
    """Writes the batches of one task, each in a transaction.

    ``task_id`` is both the transactional id and the consumer group. ``marker`` is an existing topic
    under whose first partition the group's offset is kept.
    """

    def __init__(self, config: Mapping[str, str], task_id: str, marker: str) -> None:
        self.config = dict(config)
        self.marker = marker
        self.fence = TaskFence.taken(task_id)
        self._next_batch = 0
        super().__init__(config, task_id, marker)
        group = Consumer(
            {**_client(config), "group.id": task_id, "enable.auto.commit": False}, logger=CLIENT_LOG
        )
        try:
            # first fence the holder of the id, then ask how far it came
            _again(self._transaction.init_transactions)
            self._group = group.consumer_group_metadata()
            self._next_batch = max(_committed(group, marker), 0)
        except (ProducerFenced, KafkaException) as problem:
            raise self._failure(problem) from problem
        finally:
            group.close()

    def begin(self, batch: int) -> bool:
        """Start the batch's transaction; False if the batch has been written already.

        Raises:
            DeliveryFailed: Another worker has taken over, or the broker does not answer.
        """
        if batch < self._next_batch:
            return False
        self.begin_transaction()
        number = TopicPartition(self.marker, 0, batch + 1)
        self._call(partial(self._transaction.add_offsets, [number], self._group))
        self._next_batch = batch + 1
        return True


def _said(fenced: ProducerFenced) -> str:
    """Return the library's words."""
    cause = fenced.__cause__
    return error_of(cause).str() if isinstance(cause, KafkaException) else fenced.text()


class TakenOver(DeliveryFailed):
    """Another worker writes for the task now."""


class LimitLowered(DeliveryFailed):
    """The broker refused a record that the topic took when the query was started."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(topic, reason)
        self.hint = (
            "The topic takes smaller records than when the query was started. "
            "The batch is run again and leaves out what is too large now."
        )


_kept: OrderedDict[str, TaskTransactions] = OrderedDict()
_kept_lock = Lock()


def begin_batch(
    config: Mapping[str, str], task_id: str, marker: str, batch: int
) -> TaskTransactions | None:
    """Return the open transaction of a task's batch; None if the batch has been written already.

    Raises:
        DeliveryFailed: The transaction cannot be opened.
    """
    with _kept_lock:
        kept = _kept.pop(task_id, None)
    fits = kept is not None and (kept.config, kept.marker) == (dict(config), marker)
    if kept is not None and fits and kept.fence.held():
        try:
            if kept.begin(batch):
                return kept
        except TakenOver:
            pass  # by a worker that may have failed since: take it back
        kept = None
    opened = TaskTransactions(config, task_id, marker)
    return opened if opened.begin(batch) else None


def keep(task_id: str, transactions: TaskTransactions) -> None:
    """Leave a producer, its batch committed, to the task's next batch in this worker."""
    with _kept_lock:
        _kept[task_id] = transactions
        while len(_kept) > _KEPT_PRODUCERS:
            _kept.popitem(last=False)


def _again(call: Callable[[float], None]) -> None:
    """Make a call, and make it again while the client says that it might succeed then."""
    _repeated(lambda left: in_time(call, left), lambda error: error.retriable())


def _committed(group: Consumer, marker: str) -> int:
    """Return the group's offset; a coordinator that is still being loaded is asked again."""
    partitions = [TopicPartition(marker, 0)]
    (committed,) = _repeated(lambda left: group.committed(partitions, left), is_retriable)
    return int(committed.offset)


def _repeated(call: Callable[[float], T], may_help: Callable[[KafkaError], bool]) -> T:
    deadline = time.monotonic() + _CALL_S
    while True:
        try:
            return call(max(deadline - time.monotonic(), _AGAIN_S))
        except KafkaException as problem:
            if not may_help(error_of(problem)) or time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)


_PRODUCER_ONLY: Final = (
    "acks",
    "batch.",
    "compression.",
    "delivery.",
    "enable.idempotence",
    "linger.",
    "message.",
    "partitioner",
    "queue.buffering.",
    "request.timeout",
    "retries",
    "transaction.",
)


def _client(config: Mapping[str, str]) -> dict[str, str]:
    """Return a producer's configuration without what only a producer knows."""
    return {name: value for name, value in config.items() if not name.startswith(_PRODUCER_ONLY)}


GRACE_S: Final = 5.0
"""How much later than asked for a call may still end by itself."""


def in_time(call: Callable[[float], None], limit_s: float) -> None:
    """Make a call that takes its own time limit in seconds, and do not wait much longer for it.

    librdkafka's ``send_offsets_to_transaction`` waits without end if the broker goes away while
    the client looks for the group's coordinator. Such a call stays behind in a thread of its own,
    and with it the producer, which must not be used again.

    Raises: KafkaException, the call's own or one of the code ``_TIMED_OUT`` that is not retriable.
    """
    if not call_within("kafka-call", lambda: call(limit_s), limit_s + GRACE_S):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the call did not end in time"))  # noqa: SLF001


_FOLDER = "ksql-turns"


@dataclass(frozen=True, slots=True)
class TaskFence:
    """A claim to a name, good until another claims it."""

    path: Path
    token: str

    @classmethod
    def taken(cls, name: str) -> TaskFence:
        """Claim the name; its former holder loses it."""
        fence = cls(_folder() / hashlib.sha256(name.encode()).hexdigest(), uuid.uuid4().hex)
        with suppress(OSError):  # a full disk: then the broker decides, as it does between machines
            fence.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = fence.path.with_suffix(f".{fence.token}")
            fresh.write_text(fence.token, encoding="ascii")
            fresh.replace(fence.path)
        return fence

    def held(self) -> bool:
        """Return whether nobody else has claimed it."""
        try:
            return self.path.read_text(encoding="ascii") == self.token
        except OSError:
            return False


def _folder() -> Path:
    """Return Spark's scratch space, shared by all workers of an executor and gone with it."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(scratch or tempfile.gettempdir()) / _FOLDER
