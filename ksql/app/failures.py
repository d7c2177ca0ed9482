"""Failed queries in the processing log, for whoever watches it instead of SHOW QUERIES."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError
from ksql.topics import processing_log as plog
from ksql.topics.client import Sender

if TYPE_CHECKING:
    from ksql.spark.spec import Failure
    from ksql.topics.settings import KafkaSettings

_log = logging.getLogger(__name__)
_FLUSH_S = 5.0


class FailureLog:
    """Writes in a thread of its own: often it is Kafka that a failed query waits for."""

    def __init__(self, kafka: KafkaSettings, topic: str | None) -> None:
        """``topic``: the processing log's; None if there is none."""
        self._sender = Sender(kafka)
        self._topic = topic
        self._thread = ThreadPoolExecutor(1, "failure-log")

    def note(self, query_id: str, failure: Failure) -> None:
        """Write an entry soon."""
        if self._topic is not None:
            self._thread.submit(self._write, self._topic, query_id, failure)

    def close(self) -> None:
        """Write what waits, as far as Kafka lets it."""
        self._thread.shutdown()
        self._sender.close()

    def _write(self, topic: str, query_id: str, failure: Failure) -> None:
        told = plog.thread_error(
            "Unhandled exception caught in streams thread", query_id, (failure.message,)
        )
        entry = plog.entry(plog.logger_name(query_id), failure.when_ms, told)
        try:
            self._sender.send(topic, None, entry, timestamp=failure.when_ms)
            self._sender.flush(_FLUSH_S)
        except KsqlError as error:
            _log.warning("failure_not_logged", extra={"query_id": query_id, "reason": error.text()})
