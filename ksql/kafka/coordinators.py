"""Requests that the coordinators of consumer groups answer."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException

from ksql.kafka.admin import Administrative

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NEVER_S: Final = 3600.0
"""The longest time that the client library knows; nobody waits as long."""


class Coordinators(Administrative):
    """Asks coordinators, with a limit that is not the client library's own.

    A request may reach librdkafka's limit (2.16) while it waits for a connection to its
    coordinator. It is freed, and used once more when the brokers are back: that ends the process.
    So it never gets there: a caller that waits no longer throws the client away, with its requests.
    """

    def ask(
        self, ask: Callable[..., Mapping[str, Future[Any]]], limit_s: float
    ) -> dict[str, Future[Any]]:
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
