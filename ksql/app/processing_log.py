"""The processing log: its topic, the stream over it, and the records of failed queries in it.

A failed query is written there, too, for users who watch the log and not SHOW QUERIES.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ksql.control.statements import FILE, RequestFailed
from ksql.control.statements import execute as requests
from ksql.core import KsqlError
from ksql.kafka import processing_log as plog
from ksql.kafka import stream_statement
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from ksql.control.statements import Services
    from ksql.core import QueryVersion, Settings
    from ksql.kafka import Admin
    from ksql.kafka.producers import Sender
    from ksql.spark.query import Failure


_log = logging.getLogger(__name__)


def open_log_topic(name: str, settings: Settings, admin: Admin) -> str | None:
    """Return its name, making it if need be; None: there is none, nothing is logged."""
    if name in admin.topics():
        return name
    if not settings.flag("ksql.logging.processing.topic.auto.create"):
        return None
    count = settings.number("ksql.logging.processing.topic.partitions")
    replicas = settings.number("ksql.logging.processing.topic.replication.factor")
    admin.create(Topic(name, count, replicas))
    return name


def declare(topic: str, services: Services, settings: Settings, admin: Admin) -> None:
    """Declare the processing log as a stream, so that a user can query it, where users can.

    Raises: KsqlError, as the statement does.
    """
    name = settings.text("ksql.logging.processing.stream.name")
    auto_create = settings.flag("ksql.logging.processing.stream.auto.create")
    is_missing = name not in services.engine.catalog.sources
    if auto_create and not settings.text(FILE) and is_missing and topic in admin.topics():
        try:
            requests.run(stream_statement(topic, name), services, settings, {}, {})
        except RequestFailed as failed:
            raise failed.error from failed


_PATIENCE_S = 5.0


class FailureLog:
    """Writes in a thread of its own: often it is Kafka that a failed query waits for."""

    def __init__(self, sender: Sender, topic: str) -> None:
        """Take ``sender``, its own from now on, and ``topic``, the processing log's."""
        self._sender = sender
        self._topic = topic
        self._thread = ThreadPoolExecutor(1, "failure-log")
        self._closing = False

    def note(self, version: QueryVersion, failure: Failure) -> None:
        """Write an entry soon; nothing once it is closed."""
        if self._closing:
            return
        self._thread.submit(self._write, version, failure)

    def close(self) -> None:
        """Write what waits, as far as Kafka lets it; one patience is for all of it together."""
        self._closing = True
        self._thread.shutdown()
        self._sender.close(_PATIENCE_S)

    def _write(self, version: QueryVersion, failure: Failure) -> None:
        message = plog.thread_error(
            "Unhandled exception caught in streams thread", version.name, (failure.message,)
        )
        entry = plog.entry(plog.logger_name(version.query_id), failure.when_ms, message)
        try:
            self._sender.send(self._topic, None, entry, timestamp=failure.when_ms)
            if not self._closing:
                self._sender.flush(_PATIENCE_S)
        except KsqlError as error:
            said = {"query_id": version.name, "reason": error.text()}
            _log.warning("failure_not_logged", extra=said)
