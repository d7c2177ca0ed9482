"""Consumer groups: their offsets, their deletion, their coordinators, membership in one.

A process is a member while it lives, and all others see it.

Nothing is read: the group is only a list of the living processes, which Kafka keeps. A member that
ends in order leaves at once; one that is killed or cut off, after the session's time.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Final, Protocol

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.kafka.admin import Administrative
from ksql.kafka.errors import LastError, error_of, retrying
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.record_writer import TransactionalWriter

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

    from confluent_kafka.admin import AdminClient

    from ksql.kafka.settings import KafkaSettings


_log = logging.getLogger(__name__)
_NEVER_S: Final = 3600.0
"""The longest time that the client library knows; nobody waits as long."""


class AdminRequest(Protocol):
    """Sends requests to coordinators; returns a future for each name that it asks about."""

    def __call__(
        self, client: AdminClient, /, *, request_timeout: float
    ) -> Mapping[str, Future[Any]]: ...


class Coordinators(Administrative):
    """Asks coordinators, with a limit that is not the client library's own.

    A request may reach librdkafka's limit (2.16) while it waits for a connection to its
    coordinator. It is freed, and used once more when the brokers are back: that ends the process.
    So it never gets there: a caller that waits no longer throws the client away, with its requests.
    """

    def ask(self, ask: AdminRequest, limit_s: float) -> dict[str, Future[Any]]:
        """Call ``ask(client, request_timeout=..)``, and wait for the futures that it returns.

        Returns: them, done; those without an answer in time have the error of Kafka's time-outs.
        """
        client = self._client  # held to the end: another thread may let go of it meanwhile
        futures = ask(client, request_timeout=_NEVER_S)
        missing = wait(futures.values(), limit_s).not_done
        if missing:
            self.close()
        return {name: _late() if future in missing else future for name, future in futures.items()}


def _late() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(
        KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer of a group's coordinator"))  # noqa: SLF001 - the library names its local errors so
    )
    return future


_PATIENCE_S: Final = 5.0
_UNSTABLE: Final = 88  # UNSTABLE_OFFSET_COMMIT


def _is_unstable(offsets: Future[Any]) -> bool:
    """Return whether an open transaction has offsets of the group.

    Raises: KafkaException.
    """
    try:
        partitions = offsets.result().topic_partitions
    except KafkaException as problem:
        if error_of(problem).code() == _UNSTABLE:
            return True
        raise
    errors = [partition.error for partition in partitions if partition.error is not None]
    for error in errors:
        if error.code() != _UNSTABLE:
            raise KafkaException(error)
    return bool(errors)


class Groups(Coordinators):
    """Reads what groups have committed, and deletes groups, through one connection."""

    def highest(self, names: re.Pattern[str]) -> int:
        """Return the highest offset of all groups whose whole name fits; 0 if there is none.

        What a transaction that is still open would commit does not count.

        Raises: KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        return self._retried(lambda limit_s: self._highest(names, limit_s))

    def settled(self, names: re.Pattern[str], topic: str) -> int:
        """Return the same once no transaction is open that would commit an offset of the topic.

        That is an offset of its first partition. A group has the name of its writer's transactional
        id. Taking the id over waits for a commit that is under way, and aborts any other
        transaction: its writer can commit no more.

        Raises: ProducerFenced, KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        self._retried(lambda limit_s: self._end_open(names, topic, limit_s))
        return self.highest(names)

    def _retried(self, call: Callable[[float], int]) -> int:
        return retrying(
            lambda left, _tries: call(min(left, _PATIENCE_S)),
            bootstrap=self._settings.bootstrap,
            timeout_s=self._settings.timeout_s,
            what="Cannot read the offsets of consumer groups",
        )

    def _highest(self, names: re.Pattern[str], limit_s: float) -> int:
        futures = self._offsets(names, limit_s).values()
        partitions = [
            partition for future in futures for partition in future.result().topic_partitions
        ]
        for partition in partitions:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return max((0, *(int(partition.offset) for partition in partitions)))

    def _end_open(self, names: re.Pattern[str], topic: str, limit_s: float) -> int:
        """End the transactions that are open there; return how many."""
        offsets = self._offsets(names, limit_s, stable=topic)
        unstable = [group for group, future in offsets.items() if _is_unstable(future)]
        for group in unstable:
            writer = TransactionalWriter(self._settings.producer(), group)
            writer.init_transactions(limit_s)
            _log.info("transaction_ended", extra={"group": group})
        return len(unstable)

    def _offsets(
        self, names: re.Pattern[str], limit_s: float, stable: str = ""
    ) -> dict[str, Future[Any]]:
        """Return the offsets of each group whose whole name fits.

        ``stable``: those of the first partition of this topic, an error where a transaction is open
        that would commit one.
        """
        listed = self._client.list_consumer_groups(request_timeout=limit_s).result()
        for problem in listed.errors:  # a broker that does not answer may hold the highest
            # the library lists its errors bare: raised so, nothing that takes exceptions takes them
            raise problem if isinstance(problem, KafkaException) else KafkaException(problem)
        group_ids = [group.group_id for group in listed.valid if names.fullmatch(group.group_id)]
        partitions = [TopicPartition(stable, 0)] if stable else None

        def ask(client: AdminClient, *, request_timeout: float) -> dict[str, Future[Any]]:
            # Kafka's client takes one group per request: all are on their way at once
            return {
                name: client.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name, partitions)],
                    require_stable=bool(stable),
                    request_timeout=request_timeout,
                )[name]
                for name in group_ids
            }

        return self.ask(ask, limit_s)

    def delete(self, names: re.Pattern[str]) -> list[str]:
        """Delete the groups whose whole name fits; what cannot be deleted is left and logged."""
        try:
            listed = self._client.list_consumer_groups(request_timeout=_PATIENCE_S).result()
        except KafkaException as problem:
            _log.warning("groups_left", extra={"names": names.pattern, "reason": str(problem)})
            return []
        doomed = [group.group_id for group in listed.valid if names.fullmatch(group.group_id)]
        if not doomed:
            return []
        futures = self.ask(
            lambda client, **more: client.delete_consumer_groups(doomed, **more), _PATIENCE_S
        )
        gone = []
        for group, future in futures.items():
            try:
                future.result()
                gone.append(group)
            except KafkaException as problem:
                if error_of(problem).code() != KafkaError.GROUP_ID_NOT_FOUND:
                    _log.warning("group_left", extra={"group": group, "reason": str(problem)})
        return gone


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
        self._check()

    def _join(self) -> Consumer:
        more: dict[str, str | float | bool] = {
            "group.id": self._group,
            "client.id": self._name,
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _BEAT_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        config = {**self._settings.consumer(**more), "error_cb": LastError().note}
        consumer = Consumer(config, logger=CLIENT_LOG)
        consumer.subscribe([self._topic], on_assign=_rest)
        return consumer

    def _leave(self) -> None:
        self._coordinators.close()
        if self._consumer is not None:
            self._consumer.close()

    def _check(self) -> None:
        futures = self._coordinators.ask(
            lambda client, **more: client.describe_consumer_groups([self._group], **more), _CALL_S
        )
        members = futures[self._group].result().members
        self._names = tuple(sorted({str(member.client_id) for member in members}))


def _rest(consumer: Consumer, places: list[TopicPartition]) -> None:
    consumer.assign(places)
    consumer.pause(places)
