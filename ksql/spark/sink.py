"""The end of a query's road: encoded records leave through the worker's own producer.

Spark's Kafka sink can set neither a record's timestamp nor its partition's producer; ours runs inside the
last Python stage, so that a record crosses between the JVM and Python once. Spark itself writes to its
``noop`` sink, which keeps the checkpoint's promise: a batch counts when all its tasks have returned, and
a task returns when the broker has acknowledged its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.topics.producer import worker_producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.dataflow.program import Output
    from ksql.spark.shipment import ErrorLog, Shipment


class TaskSink:
    """Where one task writes. Nothing counts before ``close`` has returned.

    A task that fails ends its worker process, and with it a producer that still holds records.
    """

    def __init__(self, ship: Shipment, topic: str | None, log: ErrorLog) -> None:
        self._producer = worker_producer(dict(ship.producer))
        self._topic = topic
        self._log = log
        self.written = 0

    def write(self, outputs: Iterable[Output]) -> None:
        """Send records to the sink topic."""
        if self._topic is not None:
            self.written += self._producer.send(self._topic, outputs, self._rejected)

    def close(self) -> None:
        """Wait until the broker has acknowledged everything.

        Raises:
            DeliveryFailed: It has not; the batch must not count.
        """
        self._producer.flush(self._rejected)

    def _rejected(self, message: str) -> None:
        self._log("sink", message, None)
