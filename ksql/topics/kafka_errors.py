"""What goes wrong with Kafka, in our words; and how long to go on trying."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from ksql.base.errors import KsqlError, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 2.0


class KafkaUnreachable(ServerError):
    """No broker answered in the time given."""

    def __init__(self, bootstrap: str, reason: str) -> None:
        super().__init__(
            f"Kafka at {bootstrap} cannot be reached",
            detail=reason,
            hint="Check bootstrap.servers and that the broker runs.",
        )


class UnknownTopic(KsqlError):
    """A topic that does not exist, or no longer."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Kafka topic does not exist: {topic}")
        self.topic = topic


class TopicExists(KsqlError):
    """A topic that was to be created is there already."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"A Kafka topic with the name '{topic}' already exists")
        self.topic = topic


class KafkaDenied(KsqlError):
    """The brokers do not allow it."""

    code = 40301

    def __init__(self, reason: str) -> None:
        super().__init__("Kafka denied access", detail=reason)


class KafkaRefused(KsqlError):
    """The brokers understood the request and refused it: a bad name, too many replicas."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}" if what else reason)


class ProducerFenced(ServerError):
    """Another producer with the same transactional id took over; this one can no longer write."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f'another server writes as "{transactional_id}" now')


class OffsetsGone(ServerError):
    """The offsets to read from do not exist: the topic was truncated or created anew."""

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(
            f'records of topic "{topic}", partition {partition}, are gone', detail=reason
        )
        self.topic = topic
        self.partition = partition


_UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - the library names its local errors so
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NETWORK_EXCEPTION,
    }
)
_UNKNOWN: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
)
_DENIED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001
    }
)
FENCED: Final = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)


def error_of(problem: KafkaException) -> KafkaError:
    """The error that the exception carries."""
    error = problem.args[0]
    if isinstance(error, KafkaError):
        return error
    return KafkaError(KafkaError._FAIL, str(problem))  # noqa: SLF001


def is_unreachable(error: KafkaError) -> bool:
    """Whether trying again may help."""
    return error.code() in _UNREACHABLE


def translated(error: KafkaError, topic: str = "", what: str = "") -> KsqlError:
    """The error in our words."""
    code = error.code()
    if code in _UNKNOWN:
        return UnknownTopic(topic)
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExists(topic)
    if code in _DENIED:
        return KafkaDenied(error.str())
    return KafkaRefused(what, error.str())


def retrying(
    call: Callable[[float, int], T],
    *,
    bootstrap: str,
    timeout_s: float,
    topic: str = "",
    what: str = "",
) -> T:
    """Call ``call(seconds left, tries so far)`` until it succeeds or cannot.

    Raises: KafkaUnreachable when the time is over; else what ``translated`` makes of the error.
    """
    end = time.monotonic() + timeout_s
    wait_s = _FIRST_WAIT_S
    tries = 0
    while True:
        try:
            return call(max(end - time.monotonic(), 0.1), tries)
        except KafkaException as problem:
            error = error_of(problem)
            if not is_unreachable(error):
                raise translated(error, topic, what) from problem
            if time.monotonic() + wait_s >= end:
                raise KafkaUnreachable(bootstrap, error.str()) from problem
        tries += 1
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
