"""Watches Kafka, the embedded broker (restarts it) and the topics of commands and schemas.

Requests for the service's health are answered from here, without waiting for Kafka or Spark.

The topics of commands and schemas cannot be rebuilt. Nothing else would notice that they are gone:
queries continue without them, and the next start is refused.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ksql.core import GrowingRest, KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.kafka import Admin, TopicIntegrity, Watched, span_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.control.log import KafkaCommandLog
    from ksql.kafka import Identities, KafkaSettings, Span
    from ksql.kafka.embedded import EmbeddedBroker


_log = logging.getLogger(__name__)
_TURN_S = 1.0
_PROBE_S = 2.0
_LONGEST_REST_S = 15.0
_PATIENCE_S = 60.0
_LONGEST_PATIENCE_S = 960.0


def impatient(settings: KafkaSettings) -> Admin:
    """Return an administration for looks that are repeated: it gives up after two seconds."""
    return Admin(replace(settings, timeout_s=_PROBE_S))


def kafka_answers(admin: Admin) -> Callable[[], str]:
    """Return a probe of Kafka: why it does not answer; empty if it does."""

    def probe() -> str:
        try:
            admin.cluster_id()
        except KsqlError as error:
            return error.text()
        return ""

    return probe


class HealthLoop:
    """Asks Kafka whether it answers, and starts the embedded broker again when it has died.

    The look at the queries has a thread of its own: a start may take minutes.
    """

    def __init__(
        self,
        probe: Callable[[], str],
        broker: EmbeddedBroker | None = None,
        on_return: Callable[[], object] = lambda: None,
        on_tick: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``on_return``, for when Kafka answers again; ``on_tick``, once a second or so."""
        self._probe = probe
        self._broker = broker
        self._on_return = on_return
        self._kafka = ""
        self._rest = GrowingRest(_LONGEST_REST_S, clock=clock)
        self.pause_s = _TURN_S
        self._workers = (
            self._worker("watch", "watch_kafka", self.check_kafka),
            self._worker("watch-queries", "watch_queries", on_tick),
        )

    def _worker(self, name: str, what: str, check: Callable[[], object]) -> PeriodicWorker:
        failure = RepeatedFailure(_log, "watch_failed", what=what)
        return PeriodicWorker(name, lambda: self.pause_s, check, failure)

    def start(self) -> None:
        """Begin; Kafka has answered already."""
        for worker in self._workers:
            worker.start()

    @property
    def kafka(self) -> str:
        """Describe the trouble with Kafka in a sentence; empty if there is none."""
        return self._kafka

    def close(self) -> None:
        """Look no more. A look that is under way is not waited for: it changes nothing any more."""
        for worker in self._workers:
            worker.end()

    def check_kafka(self) -> None:
        """Look at Kafka once."""
        broker = self._broker
        if broker is not None and not broker.alive:
            ended = f"The embedded Kafka broker has ended: {broker.ending()}"
            number = self._rest.failures + 1
            if self._rest.over:
                self._tell(f"{ended}. It is being started again, try {number}.")
                self._start_again(broker)
            else:
                self._tell(f"{ended}. Try {number} to start it again comes soon.")
            return
        problem = self._probe()
        if problem:
            self._tell(problem)
        elif self._kafka:
            self._kafka = ""
            self._rest.clear()
            _log.warning("kafka_answers_again")
            self._on_return()

    def _tell(self, problem: str) -> None:
        if not self._kafka:
            _log.warning("kafka_does_not_answer", extra={"reason": problem})
        self._kafka = problem

    def _start_again(self, broker: EmbeddedBroker) -> None:
        """Start it; each try may take longer than the one before, as the machine may be busy."""
        patience_s = min(_LONGEST_PATIENCE_S, _PATIENCE_S * (1 << min(self._rest.failures, 10)))
        try:
            broker.revive(patience_s)
        except (KsqlError, OSError) as error:  # a full disk fails the settings' file already
            reason = error.text() if isinstance(error, KsqlError) else str(error)
            rest_s = self._rest.begin()
            _log.warning(
                "broker_not_started",
                extra={"reason": reason, "attempt": self._rest.failures, "rest_s": rest_s},
            )


class _Durable(NamedTuple):
    """A topic, and how the log calls it."""

    integrity: TopicIntegrity
    name: str

    def compare(self, ask: Callable[[str], Span]) -> None:
        """Compare it with what was known; log what has come or gone."""
        if not self.integrity.check(ask):
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
