"""The end of a query's road: encoded records leave through the worker's own producer.

Spark's Kafka sink can set neither a record's timestamp nor write exactly once; ours runs inside the
last Python stage, so that a record crosses between the JVM and Python once. Spark itself writes to
its ``noop`` sink, which keeps the checkpoint's promise: a batch counts when all its tasks have
returned, and a task returns when the broker has acknowledged its records.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ksql.spark.tasklog import log_records
from ksql.topics.producer import WorkerProducer, worker_producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.dataflow.program import Output
    from ksql.spark.shipment import Shipment
    from ksql.spark.tasklog import TaskLog


class TaskSink:
    """Where one task writes: records to the sink topic, errors to the processing log.

    Nothing counts before ``close`` has returned. A task that fails ends its worker process, and
    with it a producer that still holds records.
    """

    def __init__(self, ship: Shipment, topic: str | None, log: TaskLog) -> None:
        self._ship = ship
        self._topic = topic
        self._log = log
        self._open: WorkerProducer | None = None
        self.written = 0

    def write(self, outputs: Iterable[Output]) -> None:
        """Send records to the sink topic."""
        if self._topic is not None:
            self.written += self._producer().send(self._topic, outputs, self._rejected)

    def close(self) -> None:
        """Write the log and wait until the broker has acknowledged everything.

        Raises:
            DeliveryFailed: It has not; the batch must not count.
        """
        if self._open is not None:
            self._open.flush(self._rejected)
        if self._log.entries and self._ship.log_topic is not None:
            now_ms = int(time.time() * 1000)
            producer = self._producer()
            producer.send(self._ship.log_topic, log_records(self._ship, self._log, now_ms), _ignore)
            producer.flush(_ignore)

    def _producer(self) -> WorkerProducer:
        if self._open is None:
            self._open = worker_producer(dict(self._ship.producer))
        return self._open

    def _rejected(self, message: str) -> None:
        self._log("sink", message, None)


def _ignore(_message: str) -> None:
    """An entry that is too large for the log is lost; the log must not log itself."""
