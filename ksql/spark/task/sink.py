"""The end of a query's road: encoded records leave through the worker's own producer.

Spark's Kafka sink can neither set a record's timestamp nor write exactly once. Ours runs inside the
last Python stage, so that a record crosses between the JVM and Python once. Spark itself writes to
its ``noop`` sink, which keeps the checkpoint's promise. A batch counts when all its tasks have
returned, and a task returns when the broker has acknowledged its records.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from pyspark import TaskContext

from ksql.core import NO_BATCH, QueryFailed, transactional_id
from ksql.functions.user import Overrun
from ksql.kafka import SINK, is_changelog, versioned
from ksql.kafka.producers import (
    LARGER,
    DeliveryFailed,
    RecordRefused,
    TaskTransactions,
    WorkerProducer,
    begin_batch,
    hashes_as_java,
    keep,
)
from ksql.kafka.producers.worker_producer import worker_producer
from ksql.spark.task.launch_right import LaunchOver
from ksql.spark.task.partitioner import ANYWHERE, by_partition
from ksql.spark.task.tasklog import TaskLog, log_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.core import OutRecord
    from ksql.spark.task.task_environment import TaskEnvironment


_AT_ONCE = 512  # records between two looks at the right to write: so many may leave without it
_SORTED = 50_000  # records that are sorted out together
AT_EPOCH = (
    "{} record(s) with the timestamp 0 were written with the timestamp 1: "
    "a Kafka transaction cannot hold the time 0"
)


class TaskSink:
    """Where one task writes: records to the sink topic, errors to the processing log.

    Nothing counts before ``close`` has returned. A task that fails ends its worker process, and
    with it a producer that still holds records. ``window_bytes`` are those of ``Program``.
    """

    def __init__(
        self,
        environment: TaskEnvironment,
        topic: str | None,
        log: TaskLog,
        window_bytes: int | None = None,
    ) -> None:
        self._environment = environment
        self._topic = topic
        self._log = log
        self._window_bytes = window_bytes
        self._partitions: int | None = None
        self._open: WorkerProducer | None = None
        self.home = ANYWHERE
        """The partition of results without a key: one that no other task writes, if there is."""
        self.kept: int | None = None
        """The partition of all results, which keep that of their source."""
        self.written = 0

    def write(self, outputs: Iterable[OutRecord]) -> None:
        """Send records to the sink topic."""
        if self._topic is None:
            return
        producer, left = self._producer(), iter(self._stated(outputs))
        while records := list(islice(left, _SORTED)):
            for partition, some in self._placed(producer, self._topic, self._accepted(records)):
                for start in range(0, len(some), _AT_ONCE):
                    self._environment.await_lease()
                    part = some[start : start + _AT_ONCE]
                    self.written += producer.send(self._topic, part, self._rejected, partition)

    def _accepted(self, records: list[OutRecord]) -> list[OutRecord]:
        """Return those that the topic takes: one that it does not would cost its whole batch."""
        return self._environment.limits.accepted(records, int(time.time() * 1000), self._rejected)

    def _placed(
        self, producer: WorkerProducer, topic: str, records: list[OutRecord]
    ) -> Iterable[tuple[int, list[OutRecord]]]:
        """Return the records by partition, those of each in their order."""
        if self.kept == ANYWHERE:
            return [(ANYWHERE, records)]
        if self.kept is not None and self.kept < self._count(producer, topic):
            return [(self.kept, records)]  # else the source has grown
        if self._window_bytes is None:
            return [(ANYWHERE, records)]
        if not self._window_bytes and not hashes_as_java(self._environment.sink_producer):
            return [(ANYWHERE, records)]  # a user's choice
        count = self._count(producer, topic)
        return by_partition(records, count, self._window_bytes, self.home).items()

    def _count(self, producer: WorkerProducer, topic: str) -> int:
        """Return the number of partitions, which is one for all records of a task.

        A query whose tasks divide the partitions among them writes those that it was made with.
        """
        if self._partitions is None:
            self._partitions = self._environment.partitions or producer.partitions(topic)
        return self._partitions

    def close(self) -> None:
        """Write the log and wait until the broker has acknowledged everything.

        Raises:
            DeliveryFailed: It has not; the batch must not count.
        """
        self._environment.await_lease()
        if self._open is not None:
            self._open.flush(self._rejected)
        write_log(self._environment, self._log)

    def write_placed(self, by_partition: Iterable[tuple[int, list[OutRecord]]]) -> None:
        """Send records that are in order, partition by partition.

        Where a user has chosen another partitioner, that one places them.
        """
        own = hashes_as_java(self._environment.sink_producer)
        for partition, records in by_partition:
            self.kept = partition if own else ANYWHERE
            self.write(records)

    def _stated(self, outputs: Iterable[OutRecord]) -> Iterable[OutRecord]:
        return versioned(outputs) if self._topic and is_changelog(self._topic) else outputs

    def _producer(self) -> WorkerProducer:
        if self._open is None:
            self._open = worker_producer(self._environment.sink_producer)
            self._open.expect(self._topic or "", self._environment.sink_id)
        return self._open

    def _rejected(self, reason: str, remedy: str = LARGER) -> None:
        if self._environment.strict:
            raise RecordRefused(self._topic or "", reason, remedy)
        self._log(SINK, reason, None)


class TransactionSink(TaskSink):
    """The same, but a task's records and its batch's number count together, and only once.

    ``task`` names the task the same way each time the batch is run. Entries of the processing log
    are not part of the transaction.
    """

    def __init__(
        self,
        environment: TaskEnvironment,
        topic: str,
        log: TaskLog,
        task: str,
        batch: int,
        window_bytes: int | None = None,
    ) -> None:
        super().__init__(environment, topic, log, window_bytes)
        self._sink_topic = topic
        self._task_id = transactional_id(environment.application_id, task)
        self._batch = batch
        self._transaction: TaskTransactions | None = None
        self._written_before = False

    def write(self, outputs: Iterable[OutRecord]) -> None:
        """Send records, unless an earlier run of this batch has."""
        records = list(self._stated(outputs))
        if not records or self._written_before:
            return
        self._environment.await_lease()
        if self._transaction is None:
            self._transaction = begin_batch(
                self._environment.sink_producer, self._task_id, self._sink_topic, self._batch
            )
            self._written_before = self._transaction is None
        if self._transaction is not None:
            self._transaction.expect(self._sink_topic, self._environment.sink_id)
            accepted = self._accepted(records)
            for partition, some in self._placed(self._transaction, self._sink_topic, accepted):
                self.written += self._transaction.send(
                    self._sink_topic, some, self._rejected, partition
                )

    def close(self) -> None:
        """Commit, then write the log."""
        if self._transaction is not None:
            self._check_commit(self._transaction)
            self._transaction.commit(self._rejected)
            if self._transaction.moved:
                self._log.note(SINK, AT_EPOCH.format(self._transaction.moved))
            keep(self._task_id, self._transaction)
        super().close()

    def _check_commit(self, transaction: TaskTransactions) -> None:
        """Pass if the task may commit; else abort, as readers wait for an open transaction.

        Raises: NotLeader, LaunchOver.
        """
        try:
            self._environment.await_lease()
        except LaunchOver:
            with suppress(DeliveryFailed):  # the next producer of this id ends it
                transaction.abort()
            raise


def open_sink(
    environment: TaskEnvironment,
    topic: str | None,
    log: TaskLog,
    task: str,
    window_bytes: int | None = None,
) -> TaskSink:
    """Return the sink that the query's guarantee asks for."""
    if not environment.exactly_once or topic is None:
        return TaskSink(environment, topic, log, window_bytes)
    return TransactionSink(environment, topic, log, task, batch_id(), window_bytes)


def batch_id() -> int:
    """Return the number of the micro-batch that this task belongs to."""
    context = TaskContext.get()
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    if batch is None:
        raise NO_BATCH()
    return int(batch)


def write_log(environment: TaskEnvironment, log: TaskLog) -> None:
    """Write the entries to the processing log's topic, and wait.

    Raises:
        DeliveryFailed: The broker did not acknowledge them.
    """
    if not (log.entries or log.notes) or environment.log_topic is None:
        return
    producer = worker_producer(dict(environment.producer))
    producer.send(
        environment.log_topic, log_records(environment, log, int(time.time() * 1000)), _ignore
    )
    producer.flush(_ignore)


@contextmanager
def last_words(environment: TaskEnvironment) -> Iterator[None]:
    """Log a record that ends the task, though nothing else of the task counts."""
    try:
        yield
    except Overrun as overrun:
        failed = UserFunctionEnded(str(overrun))
        _say(environment, failed)
        raise failed from overrun
    except QueryFailed as error:
        _say(environment, error)
        raise


def _say(environment: TaskEnvironment, error: QueryFailed) -> None:
    if error.entry is None:
        return
    log = TaskLog()
    log(*error.entry)
    with suppress(DeliveryFailed):  # Kafka is away; the reason itself goes up all the same
        write_log(environment, log)


class UserFunctionEnded(QueryFailed):
    """A user function that took more time or memory than it may."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            hint="Mend the function, or raise ksql.udf.timeout.ms or ksql.udf.memory.max.bytes.",
            entry=("UserFunction", what, None),
        )


def _ignore(_message: str) -> None:
    """Ignore an entry that is too large for the log: the log must not log itself."""
