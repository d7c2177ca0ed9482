"""The check that a journal's topic is whole: the one that was read, and only appended to.

Source: ksqlDB's command runner, which is degraded when its topic was modified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError
from ksql.kafka.errors import UnknownTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.kafka.admin import Admin

LOOKS: Final = 2
"""In a row that must find the same: a broker that has just come up may not know all topics yet."""


@dataclass(frozen=True, slots=True)
class Span:
    """A topic as it is: Kafka's id, its first offset and the one after its last record.

    ``id`` is None if there is no such topic, and empty where the brokers are too old to give ids.
    """

    id: str | None
    first: int = 0
    end: int = 0


def span_of(admin: Admin, topic: str) -> Span:
    """Return a topic of one partition as it is now.

    Raises: KafkaUnreachable, KafkaDenied.
    """
    return span_with(admin, topic, admin.topic_id(topic))


def span_with(admin: Admin, topic: str, topic_id: str | None) -> Span:
    """Return a topic whose id is known: None if there is none.

    Raises: KafkaUnreachable, KafkaDenied.
    """
    try:
        return Span(None) if topic_id is None else Span(topic_id, *admin.span(topic))
    except UnknownTopic:
        return Span(None)


def damage(topic: str, then: Span, now: Span) -> str:
    """Return what has happened to a topic that may only grow; empty if it is whole."""
    if now.id is None:
        return f"the topic {topic} was deleted"
    if then.id and now.id and then.id != now.id:
        return f"the topic {topic} was deleted and recreated (its id was {then.id}, now {now.id})"
    if now.first > then.first:
        return f"records of the topic {topic} before offset {now.first} were removed"
    if now.end < then.end:
        return f"the topic {topic} ends at offset {now.end}, and had records up to {then.end}"
    return ""


class TopicIntegrity:
    """Compares a topic with what was known of it.

    ``look`` is for one thread, again and again: what two looks in a row find counts. A topic that
    was missing and is there again, with its id and its records, is whole again.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known: Span | None = None
        self._looks = 0
        self.problem = ""
        """What has happened to it; empty if it is whole."""

    def know(self, now: Span) -> None:
        """Take the topic as it is for whole."""
        self._known, self._looks, self.problem = now, 0, ""

    def damage(self, now: Span) -> str:
        """Return what has happened to it since it was known; empty if it is whole."""
        return "" if self._known is None else damage(self._topic, self._known, now)

    def doubt(self) -> None:
        """Forget what the last looks have found: Kafka has not answered since."""
        self._looks = 0

    def check(self, ask: Callable[[str], Span]) -> bool:
        """Look once; return whether the problem has come or gone.

        A look that Kafka does not answer (``ask`` raises KsqlError then) proves nothing.
        """
        try:
            now = ask(self._topic)
        except KsqlError:  # whether Kafka answers at all is watched and shown elsewhere
            self.doubt()
            return False
        before, damage = self.problem, self.damage(now)
        if not damage:
            self.know(now)
            return before != ""
        self._looks += 1
        if self._looks >= LOOKS:
            self.problem = damage
        return (before == "") != (self.problem == "")
