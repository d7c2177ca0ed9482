"""Errors of Kafka in our words, retries until a time limit, and a client's last error.

A Kafka client's own threads report errors, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from ksql.core import KsqlError, ServerError, Tally

T = TypeVar("T")

CLIENT_ERRORS: Final = Tally(500)
"""The errors of this process' clients: by what the client does, and by the name of the error."""

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 2.0


class KafkaUnreachable(ServerError):
    """No broker answered in the time given."""

    code = 50305

    def __init__(self, bootstrap: str, reason: str) -> None:
        super().__init__(
            f"Kafka at {bootstrap} cannot be reached",
            detail=reason,
            hint="Check bootstrap.servers and that the broker runs.",
        )


class KafkaNotReady(KafkaUnreachable):
    """The brokers answer, and ask to be asked later, for longer than the time given."""

    def __init__(self, bootstrap: str, reason: str) -> None:
        ServerError.__init__(
            self,
            f"Kafka at {bootstrap} is not ready",
            detail=reason,
            hint="Check that its brokers are up and in sync, and try again.",
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


class WriteFailed(ServerError):
    """A record that the brokers did not take."""

    def __init__(self, topic: str, reason: str, hint: str = "") -> None:
        super().__init__(f'cannot write to topic "{topic}"', detail=reason, hint=hint)


class ProducerFenced(ServerError):
    """Another producer with the same transactional id took over; this one can no longer write."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f'another server writes as "{transactional_id}" now')


class OffsetsGone(ServerError):
    """The offsets to read from do not exist: the topic was truncated or created again."""

    operator = True

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(
            f'records of topic "{topic}", partition {partition}, are gone', detail=reason
        )
        self.topic = topic
        self.partition = partition


RETRIABLE: Final = frozenset(
    {
        2,  # CORRUPT_MESSAGE
        3,  # UNKNOWN_TOPIC_OR_PARTITION
        5,  # LEADER_NOT_AVAILABLE
        6,  # NOT_LEADER_OR_FOLLOWER
        7,  # REQUEST_TIMED_OUT
        9,  # REPLICA_NOT_AVAILABLE
        13,  # NETWORK_EXCEPTION
        14,  # COORDINATOR_LOAD_IN_PROGRESS
        15,  # COORDINATOR_NOT_AVAILABLE
        16,  # NOT_COORDINATOR
        19,  # NOT_ENOUGH_REPLICAS
        20,  # NOT_ENOUGH_REPLICAS_AFTER_APPEND
        41,  # NOT_CONTROLLER
        51,  # CONCURRENT_TRANSACTIONS
        56,  # KAFKA_STORAGE_ERROR
        70,  # FETCH_SESSION_ID_NOT_FOUND
        71,  # INVALID_FETCH_SESSION_EPOCH
        72,  # LISTENER_NOT_FOUND
        74,  # FENCED_LEADER_EPOCH
        75,  # UNKNOWN_LEADER_EPOCH
        78,  # OFFSET_NOT_AVAILABLE
        80,  # PREFERRED_LEADER_NOT_AVAILABLE
        83,  # ELIGIBLE_LEADERS_NOT_AVAILABLE
        84,  # ELECTION_NOT_NEEDED
        88,  # UNSTABLE_OFFSET_COMMIT
        89,  # THROTTLING_QUOTA_EXCEEDED
        100,  # UNKNOWN_TOPIC_ID
        103,  # INCONSISTENT_TOPIC_ID
        106,  # FETCH_SESSION_TOPIC_ID_ERROR
        122,  # SHARE_SESSION_NOT_FOUND
        123,  # INVALID_SHARE_SESSION_EPOCH
        133,  # SHARE_SESSION_LIMIT_REACHED
    }
)
"""The codes of the brokers whose Java exception is a RetriableException.

Source: org.apache.kafka.common.protocol.Errors of kafka-clients 4.1.1, which a test reads.
"""

BROKER_NOT_AVAILABLE: Final = KafkaError.BROKER_NOT_AVAILABLE
"""Not retriable to Java's clients, which never see it: what a broker says that is on its way."""

_LOCAL: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - the library names its local errors so
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._RETRY,  # noqa: SLF001
        KafkaError._WAIT_CACHE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError._DESTROY_BROKER,  # noqa: SLF001
        KafkaError._UNKNOWN_BROKER,  # noqa: SLF001
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
    """Return the error that the exception carries."""
    error = problem.args[0]
    if isinstance(error, KafkaError):
        return error
    return KafkaError(KafkaError._FAIL, str(problem))  # noqa: SLF001


def is_unknown_topic(error: KafkaError) -> bool:
    """Return whether the brokers do not know the topic."""
    return error.code() in _UNKNOWN


def is_retriable(error: KafkaError) -> bool:
    """Return whether trying again may help.

    An unknown topic counts as an answer, though Java tries again: callers that know it exists
    ask ``is_unknown_topic`` too.
    """
    code = error.code()
    if code in _UNKNOWN:
        return False
    return code in RETRIABLE or code in _LOCAL or code == BROKER_NOT_AVAILABLE or error.retriable()


def given_up(bootstrap: str, error: KafkaError) -> KafkaUnreachable:
    """Return the error to raise when trying again did not help in time."""
    if error.code() > 0:
        return KafkaNotReady(bootstrap, error.str())
    return KafkaUnreachable(bootstrap, error.str())


def translated(error: KafkaError, topic: str = "", what: str = "") -> KsqlError:
    """Return the error in our words."""
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
    known_topic: bool = False,
) -> T:
    """Call ``call(seconds left, tries so far)`` until it succeeds or cannot.

    ``known_topic``: the topics have just been seen; a broker that does not know them is behind.

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
            CLIENT_ERRORS.add("request", error.name())
            if not (is_retriable(error) or (known_topic and is_unknown_topic(error))):
                raise translated(error, topic, what) from problem
            if time.monotonic() + wait_s >= end:
                raise given_up(bootstrap, error) from problem
        tries += 1
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


class LastError:
    """The last error of a client's connections.

    A client keeps its callbacks. Bound to the client's owner they would make a cycle. The
    connections and threads of an unused client would stay until Python searches for cycles, which a
    server does rarely.
    """

    client = "consumer"
    """What the client does, as ``CLIENT_ERRORS`` calls it."""

    def __init__(self) -> None:
        self.text = ""

    def note(self, error: KafkaError) -> None:
        """Take and count an error: the client's callback."""
        self.text = error.str()
        CLIENT_ERRORS.add(self.client, error.name())
