"""The processing log's topic, and the stream over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.statements import execute as requests
from ksql.control.statements.answers import RequestFailed
from ksql.control.statements.queriesfile import FILE
from ksql.kafka.processing_log import stream_statement
from ksql.sql.catalog.topic import Topic

if TYPE_CHECKING:
    from ksql.control.statements.services import Services
    from ksql.core.config import Settings
    from ksql.kafka.admin import Admin


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
