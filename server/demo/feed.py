"""Records sent to Kafka at a steady pace, while the demo does other things."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice

from ksql.kafka.producers import Sender
from server.demo.data import KafkaRecord

_TICK_S = 0.1
_MOST_TICKS = 10.0  # what a late tick makes up for


class Feed:
    """A thread that sends records, no faster than its rate and no further than it may.

    The limit keeps records for later: what has to happen while records come in would otherwise
    happen after the last one on a slow machine.
    """

    def __init__(
        self, producer: Sender, topic: str, records: Iterator[KafkaRecord], per_second: float
    ) -> None:
        self.sent = 0
        self._producer = producer
        self._topic = topic
        self._records = records
        self._per_second = per_second
        self._limit = 0
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self, limit: int) -> None:
        """Begin, up to that many records."""
        self._limit = limit
        self._thread.start()

    def allow(self, limit: int) -> None:
        """Continue, up to that many records in all."""
        self._limit = limit

    def await_sent(self, count: int) -> None:
        """Wait until so many are in Kafka.

        Raises: what ended the feed.
        """
        while self.sent < count:
            if self._failure is not None:
                raise self._failure
            time.sleep(_TICK_S / 2)

    def close(self) -> None:
        """End it, wherever it is."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._feed(time.monotonic)
        except Exception as failure:  # noqa: BLE001 - raised where it is waited for
            self._failure = failure

    def _feed(self, clock: Callable[[], float]) -> None:
        last, due = clock(), 0.0
        while not self._over.wait(_TICK_S):
            now = clock()
            most = self._per_second * _TICK_S * _MOST_TICKS
            due = min(due + (now - last) * self._per_second, most)
            last = now
            count = min(int(due), self._limit - self.sent)
            if count > 0:
                due -= count
                self._send(count)

    def _send(self, count: int) -> None:
        sent = 0
        for record in islice(self._records, count):
            self._producer.send(
                self._topic, record.key, record.value, timestamp=record.timestamp_ms
            )
            sent += 1
        self._producer.flush()
        self.sent += sent
