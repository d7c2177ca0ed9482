"""The end of a query's road: encoded records leave through the worker's own producer.

Spark's Kafka sink can set neither a record's timestamp nor its partition's producer; ours runs inside the
last Python stage, so that a record crosses between the JVM and Python once. Spark itself writes to its
``noop`` sink, which keeps the checkpoint's promise: a batch counts when all its tasks have returned, and
a task returns when the broker has acknowledged its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.topics.producer import DeliveryFailed, forget_producer, worker_producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from ksql.dataflow.program import Output
    from ksql.spark.shipment import ErrorLog, Shipment


class TaskSink:
    """Where one task writes; leaving the ``with`` block waits for the acknowledgements."""

    def __init__(self, ship: Shipment, topic: str | None, log: ErrorLog) -> None:
        self._config: Mapping[str, str] = dict(ship.producer)
        self._topic = topic
        self._log = log
        self._query = ship.query_id
        self.written = 0

    def __enter__(self) -> TaskSink:
        """Open the worker's producer if it is not yet."""
        self._producer = worker_producer(self._config)
        return self

    def write(self, outputs: Iterable[Output]) -> None:
        """Send records to the sink topic."""
        if self._topic is not None:
            self.written += self._producer.send(self._topic, outputs, self._rejected)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Flush; after any failure the producer is given up with what it still holds."""
        try:
            if kind is None:
                self._producer.flush(self._rejected)
        except DeliveryFailed:
            kind = DeliveryFailed
            raise
        finally:
            if kind is not None:
                forget_producer(self._config)

    def _rejected(self, message: str) -> None:
        self._log("sink", message, None)
