"""A process as a member of a consumer group: there while it lives, seen by all others.

Nothing is read: the group is only a list of the living, which Kafka keeps. A member that ends in
order leaves at once; one that is killed or cut off, after the session's time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException

from ksql.core.process.periodic import PeriodicWorker, RepeatedFailure
from ksql.kafka.coordinators import Coordinators
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from ksql.kafka.settings import KafkaSettings

_log = logging.getLogger(__name__)
_SESSION_MS: Final = 6_000  # the least that brokers allow
_BEAT_MS: Final = 1_000
_TURN_S: Final = 1.0
_CALL_S: Final = 3.0
_END_S: Final = 5.0


class GroupMember:
    """One member under its name, and the names of all members; ``close`` leaves the group."""

    def __init__(self, settings: KafkaSettings, group: str, topic: str, name: str) -> None:
        """Take a ``topic`` that exists, and is one that a member may be given to read."""
        self._group = group
        self._topic = topic
        self._settings = settings
        self._coordinators = Coordinators(settings)
        self._name = name
        self._names: tuple[str, ...] = ()
        self._consumer: Consumer | None = None
        self._outage = RepeatedFailure(_log, "members_not_seen", (KafkaException,))
        self._worker = PeriodicWorker(
            "membership", _TURN_S, self._stay, self._outage, at_once=True, at_end=self._leave
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the members at the last look; empty before the first."""
        return self._names

    def start(self) -> None:
        """Join the group, and look at it once a second from now on."""
        self._worker.start()

    def close(self, patience_s: float = _END_S) -> None:
        """Leave the group, and wait that long for it; harmless when it was not joined."""
        self._worker.stop(patience_s)

    def _stay(self) -> None:
        """Show that this member lives, and look who else does.

        Raises: KafkaException; the last look counts then.
        """
        if self._consumer is None:
            self._consumer = self._join()
        self._consumer.poll(0)
        self._look()

    def _join(self) -> Consumer:
        more: dict[str, str | float | bool] = {
            "group.id": self._group,
            "client.id": self._name,
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _BEAT_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        consumer = Consumer(self._settings.consumer(**more), logger=CLIENT_LOG)
        consumer.subscribe([self._topic], on_assign=_rest)
        return consumer

    def _leave(self) -> None:
        self._coordinators.close()
        if self._consumer is not None:
            self._consumer.close()

    def _look(self) -> None:
        futures = self._coordinators.ask(
            lambda client, **more: client.describe_consumer_groups([self._group], **more), _CALL_S
        )
        members = futures[self._group].result().members
        self._names = tuple(sorted({str(member.client_id) for member in members}))


def _rest(consumer: Consumer, places: list[TopicPartition]) -> None:
    consumer.assign(places)
    consumer.pause(places)
