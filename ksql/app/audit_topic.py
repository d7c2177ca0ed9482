"""The topic of the audit: each line of the audit's log is a record there, too.

A line is in the log first. Its record then waits for a thread that hands it to Kafka, so no request
waits. Records stay in the queue until Kafka has taken them; those that come to a full one are lost,
and counted.
Source: docs/access.md#audit.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from ksql.core import KsqlError, StartError, Tally, hidden_if_secret, log_fields
from ksql.core.process import in_background
from ksql.exec.dataflow import topic_acl
from ksql.kafka import UnknownTopic, WriteFailed, topic_name
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.kafka import Admin
    from ksql.kafka.producers import Delivered, DeliveryFuture, SharedSender

NAME: Final = "ksql.audit.topic.name"
MOST: Final = 10_000
"""How many records may wait; each has some hundred bytes."""
WRITTEN, LOST = "written", "lost"
_AUDIT: Final = logging.getLogger("ksql.audit")
_AT_ONCE: Final = 500
_PAUSE_S: Final = 1.0
_PATIENCE_S: Final = 2.0
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NOT_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_log = logging.getLogger(__name__)


class BadAuditTopic(StartError):
    """A name that the audit's topic cannot have."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{NAME}={name}: {why}", hint=f"Example: {NAME}=ksql_audit")


class _Entry(NamedTuple):
    time_ms: int
    value: bytes


def check_audit(settings: Settings) -> None:
    """Refuse a name that Kafka has for no topic, or that another part writes to.

    Raises: BadAuditTopic.
    """
    name = settings.text(NAME)
    if not name:
        return
    if not _LEGAL.fullmatch(name) or name in (".", ".."):
        raise BadAuditTopic(name, "a topic's name has letters, digits, '.', '_' and '-' only")
    log = settings.text("ksql.logging.processing.topic.name")
    if name == topic_name(settings.text("ksql.service.id"), log):
        raise BadAuditTopic(name, "this is the topic of the processing log")
    try:
        topic_acl.check_read(name)
    except KsqlError as closed:
        raise BadAuditTopic(name, "this topic is internal to Kafka or a ksql service") from closed


def audit_topic(settings: Settings) -> Topic | None:
    """Return the configured topic; None if there is none."""
    name = settings.text(NAME)
    if not name:
        return None
    partitions = settings.number("ksql.audit.topic.partitions")
    return Topic(name, partitions, settings.number("ksql.audit.topic.replication.factor"))


class AuditTopic(logging.Handler):
    """Copies the audit's lines to a topic, from its creation until ``close``.

    ``outcomes`` counts its records: ``written`` or ``lost``.
    """

    def __init__(
        self, topic: Topic, writer: SharedSender, topics: Admin, service: str, host: str
    ) -> None:
        super().__init__()
        self._topic, self._writer, self._topics = topic, writer, topics
        self._service, self._host = service, host
        self.outcomes = Tally()
        self._waiting: deque[_Entry] = deque()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._is_there = False
        self._failing = False
        self._lost = 0  # up to the last line about it
        _AUDIT.addHandler(self)
        self._thread = in_background("audit-topic", self._run)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; the lock of the handler is held."""
        if len(self._waiting) >= MOST:
            self.outcomes.add(LOST)
            return
        self._waiting.append(self._entry(record))
        self._news.set()

    def close(self) -> None:
        """Take no more lines, and give those that wait two seconds. Idempotent."""
        _AUDIT.removeHandler(self)
        self._closing.set()
        self._news.set()
        self._thread.join(_PATIENCE_S)
        if left := len(self._waiting):
            self.outcomes.add(LOST, by=left)
            _log.warning("audit_records_lost", extra={"topic": self._topic.name, "records": left})
        super().close()

    def _entry(self, record: logging.LogRecord) -> _Entry:
        time_ms = int(record.created * 1000)
        own = {name: value for name, value in vars(record).items() if name not in _NOT_OWN}
        value = {
            "time": time_ms,
            "event": record.getMessage(),
            "service": self._service,
            "host": self._host,
            **log_fields(),
            **{name: _plain(name, value) for name, value in own.items()},
        }
        return _Entry(time_ms, orjson.dumps(value))

    def _run(self) -> None:
        while not self._closing.is_set() or self._waiting:
            self._news.wait()
            self._news.clear()
            while self._waiting:
                if not self._attempt():
                    if self._closing.is_set():
                        return
                    self._closing.wait(_PAUSE_S)

    def _attempt(self) -> bool:
        """Write what waits, ``_AT_ONCE`` at most; return whether Kafka works."""
        try:
            written = self._write()
        except KsqlError as error:
            if isinstance(error, UnknownTopic):
                self._is_there = False
            self._note_failure(error)
            return False
        lost = self.outcomes.counts().get((LOST,), 0)
        if written and not self._waiting and (self._failing or lost > self._lost):
            fields = {"topic": self._topic.name, "lost": lost - self._lost}
            _log.warning("audit_topic_written", extra=fields)
            self._failing, self._lost = False, lost
        return True

    def _write(self) -> int:
        """Return how many records Kafka has taken."""
        if not self._is_there:
            if self._topic.name not in self._topics.topics():
                self._topics.create(self._topic)
            self._is_there = True
        begun: list[DeliveryFuture | Delivered] = []
        for index in range(min(len(self._waiting), _AT_ONCE)):
            entry = self._waiting[index]
            try:
                begun.append(self._writer.begin(self._topic.name, None, entry.value, entry.time_ms))
            except WriteFailed as error:
                if not begun:
                    self._refuse(error)
                break  # those before it are awaited first
        return sum(self._settle(delivery) for delivery in begun)

    def _settle(self, delivery: DeliveryFuture | Delivered) -> bool:
        """Wait for the record at the head of the queue, and take it off; return if it is there."""
        try:
            delivery.wait()
        except WriteFailed as error:
            self._refuse(error)
            return False
        self._waiting.popleft()
        self.outcomes.add(WRITTEN)
        return True

    def _refuse(self, error: WriteFailed) -> None:
        """Give up the record at the head of the queue, which this topic never takes."""
        self._waiting.popleft()
        self.outcomes.add(LOST)
        self._note_failure(error)

    def _note_failure(self, error: KsqlError) -> None:
        if not self._failing:
            self._failing = True
            fields = {"topic": self._topic.name, "reason": error.text()}
            _log.error("audit_topic_not_written", extra=fields)


def _plain(name: str, value: object) -> object:
    return value if isinstance(value, bool | int) else hidden_if_secret(name, str(value))
