"""The topics that cannot be rebuilt, watched: the command topic and that of the schemas.

Nothing else would notice that they are gone: queries continue without them, and the next start is
refused.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ksql.kafka.topic_integrity import TopicIntegrity, span_with
from ksql.kafka.topic_watch import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.control.log.log import KafkaCommandLog
    from ksql.kafka.admin import Admin
    from ksql.kafka.topic_integrity import Span
    from ksql.kafka.topic_watch import Identities

_log = logging.getLogger(__name__)


class _Durable(NamedTuple):
    """A topic, and how the log calls it."""

    integrity: TopicIntegrity
    name: str

    def compare(self, ask: Callable[[str], Span]) -> None:
        """Compare it with what was known; log what has come or gone."""
        if not self.integrity.look(ask):
            return
        if self.integrity.problem:
            _log.error(f"{self.name}_lost", extra={"reason": self.integrity.problem})
        else:
            _log.warning(f"{self.name}_whole_again")


class DurableTopics:
    """Has both watched; asks where they begin and end, without patience."""

    def __init__(
        self, admin: Admin, log: KafkaCommandLog, schemas: str, ended: Callable[[], bool]
    ) -> None:
        """Take ``schemas``, the topic of the embedded registry; empty if there is none.

        ``ended`` says whether the service was terminated: then its command topic is gone on
        purpose.
        """
        self._admin = admin
        self._schemas = TopicIntegrity(schemas) if schemas else None
        self._topics = {log.topic: _Durable(log.wholeness, "command_topic")}
        if self._schemas is not None:
            self._topics[schemas] = _Durable(self._schemas, "schemas_topic")
        self._ended = ended

    def watched(self) -> Watched:
        """Return both; what has come or gone is logged."""
        topics = {} if self._ended() else self._topics
        return Watched(topics, partial(self._compare, topics))

    def _compare(self, topics: Mapping[str, _Durable], now: Identities | None) -> None:
        for topic, durable in topics.items():
            if now is None:
                durable.integrity.doubt()
                continue
            identity = now.get(topic)
            topic_id = None if identity is None else identity.id
            durable.compare(partial(span_with, self._admin, topic_id=topic_id))

    def schemas(self) -> str:
        """Return what is wrong with the topic of the schemas; empty if nothing is."""
        if self._schemas is None or not self._schemas.problem:
            return ""
        return (
            f"{self._schemas.problem}. Schemas that were registered are known until the server "
            "ends. Stop it, bring the topic back from a backup (`ksql restore DIRECTORY`) and "
            "start it again."
        )
