"""A look at everything around the queries, about once a second; what is embedded is kept alive.

Questions about the service's health are answered from here, without waiting for Kafka or Spark.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core.errors import KsqlError
from ksql.core.process.periodic import PeriodicWorker, RepeatedFailure
from ksql.kafka.admin import Admin

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.kafka.embedded.broker import EmbeddedBroker
    from ksql.kafka.settings import KafkaSettings

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
    ) -> None:
        """Take ``on_return``, for when Kafka answers again; ``on_tick``, once a second or so."""
        self._probe = probe
        self._broker = broker
        self._on_return = on_return
        self._kafka = ""
        self._next_start = 0.0
        self._attempt = 0
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
            if time.monotonic() >= self._next_start:
                self._tell(f"{ended}. It is being started again, try {self._attempt + 1}.")
                self._start_again(broker)
            else:
                self._tell(f"{ended}. Try {self._attempt + 1} to start it again comes soon.")
            return
        problem = self._probe()
        if problem:
            self._tell(problem)
        elif self._kafka:
            self._kafka = ""
            self._attempt = 0
            _log.warning("kafka_answers_again")
            self._on_return()

    def _tell(self, problem: str) -> None:
        if not self._kafka:
            _log.warning("kafka_does_not_answer", extra={"reason": problem})
        self._kafka = problem

    def _start_again(self, broker: EmbeddedBroker) -> None:
        """Start it; each try may take longer than the one before, as the machine may be busy."""
        patience_s = min(_LONGEST_PATIENCE_S, _PATIENCE_S * (1 << min(self._attempt, 10)))
        try:
            broker.revive(patience_s)
        except (KsqlError, OSError) as error:  # a full disk fails the settings' file already
            reason = error.text() if isinstance(error, KsqlError) else str(error)
            rest_s = min(_LONGEST_REST_S, float(1 << min(self._attempt, 10)))
            self._attempt += 1
            self._next_start = time.monotonic() + rest_s
            _log.warning(
                "broker_not_started",
                extra={"reason": reason, "attempt": self._attempt, "rest_s": rest_s},
            )
