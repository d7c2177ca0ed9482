"""Calls of Kafka's client that end, whatever the client makes of its own time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException

from ksql.core.process.background import call_within

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_S: Final = 5.0
"""How much later than asked for a call may still end by itself."""


def in_time(call: Callable[[float], None], limit_s: float) -> None:
    """Make a call that takes its own time limit in seconds, and do not wait much longer for it.

    librdkafka's ``send_offsets_to_transaction`` waits without end if the broker goes away while
    the client looks for the group's coordinator. Such a call stays behind in a thread of its own,
    and with it the producer, which must not be used again.

    Raises: KafkaException, the call's own or one of the code ``_TIMED_OUT`` that is not retriable.
    """
    if not call_within("kafka-call", lambda: call(limit_s), limit_s + GRACE_S):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the call did not end in time"))  # noqa: SLF001
