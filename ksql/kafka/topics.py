"""Kafka's topics as the engine wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.catalog.topic import Topic
from ksql.kafka.errors import TopicExists, UnknownTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.kafka.admin import Admin


class KafkaTopics:
    """The ``Topics`` protocol over Kafka's administration."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self, name: str) -> Topic | None:
        """The topic with all its configs, or None."""
        found = self._admin.describe([name]).get(name)
        if found is None:
            return None
        return Topic(found.name, found.partitions, found.replicas, found.configs)

    def identity(self, name: str) -> str:
        """Kafka's own id of the topic; empty if there is none."""
        return self._admin.topic_id(name) or ""

    def create(self, topic: Topic) -> bool:
        """Create it, unless it exists."""
        try:
            self._admin.create(topic)
        except TopicExists:
            return False
        return True

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that exist."""
        for name in names:
            try:
                self._admin.delete(name)
            except UnknownTopic:
                continue
