"""The processing log's topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.catalog.topic import Topic

if TYPE_CHECKING:
    from ksql.base.config import Settings
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
