"""The leader of a service: claims in a topic that only one producer at a time can write.

Each claim is a transaction under one transactional id, so the taker of the id fences all other
servers for good. A server that was paused cannot even repeat its claim. The last record names the
leader, which repeats its claim all the time.

Source: KIP-98 on fencing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from ksql.kafka.errors import KafkaUnreachable, OffsetsGone, ProducerFenced, error_of
from ksql.kafka.journal import Journal
from ksql.kafka.producers.record_writer import TransactionalWriter, is_fenced
from ksql.kafka.reader import BEGINNING

if TYPE_CHECKING:
    from ksql.kafka.settings import KafkaSettings

FORMAT: Final = 1
_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    "segment.ms": "600000",
}
_TRANSACTION_MS: Final = 10_000
_CALL_S: Final = 3.0


def topic_name(service_id: str) -> str:
    """Return ``_confluent-ksql-<service id>_server_claims``."""
    return f"_confluent-ksql-{service_id}_server_claims"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipRecord:
    """A server that says that it leads.

    ``id`` is one start of it, and ``state_id`` its state directory, wherever that lies.
    ``listener`` is where other servers reach it, ``troubled`` the queries that do not run there,
    with their states. ``place`` is what no copy of that directory has at the same time.
    """

    id: str
    host: str
    pid: int
    state_dir: str
    state_id: str
    since_ms: int
    released: bool = False
    listener: str = ""
    troubled: tuple[tuple[str, str], ...] = ()
    place: str = ""

    def encode(self) -> bytes:
        """Return it as it is stored."""
        text: dict[str, object] = {
            "format": FORMAT,
            "id": self.id,
            "host": self.host,
            "pid": self.pid,
            "state.dir": self.state_dir,
            "state.id": self.state_id,
            "since.ms": self.since_ms,
            "released": self.released,
        }
        if self.listener:  # servers before these fields wrote none, and read none
            text["listener"] = self.listener
        if self.troubled:
            text["troubled"] = dict(self.troubled)
        if self.place:
            text["place"] = self.place
        return json.dumps(text).encode()


def decode(value: bytes | None) -> LeadershipRecord:
    """Return a stored claim; what cannot be read is a claim of somebody unknown."""
    try:
        fields = json.loads(value or b"")
        return LeadershipRecord(
            id=str(fields["id"]),
            host=str(fields["host"]),
            pid=int(fields["pid"]),
            state_dir=str(fields["state.dir"]),
            state_id=str(fields["state.id"]),
            since_ms=int(fields["since.ms"]),
            released=bool(fields["released"]),
            listener=str(fields.get("listener", "")),
            troubled=tuple(sorted(dict(fields.get("troubled", {})).items())),
            place=str(fields.get("place", "")),
        )
    except (KeyError, TypeError, ValueError):
        return LeadershipRecord(
            id="", host="unknown", pid=0, state_dir="unknown", state_id="", since_ms=0
        )


class KafkaLeadershipLog:
    """The claims of one service's servers; for one thread at a time."""

    def __init__(self, settings: KafkaSettings, service_id: str, replicas: int) -> None:
        self.topic = topic_name(service_id)
        self._settings = settings
        self._journal = Journal(settings, self.topic, replicas, _CONFIGS)
        self._writer: TransactionalWriter | None = None
        self._last: LeadershipRecord | None = None
        self._open = False
        self._broken = False

    def open(self) -> None:
        """Make the topic if it is missing.

        Raises: KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        self._journal.ensure_topic()

    def end(self) -> int:
        """Return the offset after the last claim: it grows with each.

        Raises: KafkaUnreachable, UnknownTopic.
        """
        return self._journal.end()

    def last(self) -> LeadershipRecord | None:
        """Return the last claim; None if there is none, or none since long.

        Raises: KafkaUnreachable, UnknownTopic.
        """
        try:
            self._read_on()
        except OffsetsGone:  # the topic was recreated
            self._journal.stop_reading()
            self._read_on()
        except BaseException:
            self._journal.stop_reading()
            raise
        return self._last

    def _read_on(self) -> None:
        if not self._journal.reading:
            self._last = None
            self._journal.seek(BEGINNING)
        for batch in self._journal.read_to_end():
            self._last = decode(batch[-1].value)

    def acquire(self) -> None:
        """Shut out every other writer of claims.

        Raises: KafkaUnreachable, ProducerFenced.
        """
        self.close()
        more: dict[str, str | float | bool] = {
            "transaction.timeout.ms": _TRANSACTION_MS,
            "delivery.timeout.ms": _TRANSACTION_MS,
            "acks": "all",
        }
        self._writer = writer = TransactionalWriter(self._settings.producer(**more), self.topic)
        try:
            writer.init_transactions(self._settings.timeout_s)
        except KafkaException as problem:
            raise self._failure(problem) from problem

    def append(self, claim: LeadershipRecord) -> None:
        """Write a claim; it counts when this returns.

        After KafkaUnreachable the same claim may be appended again, and it may have counted.

        Raises: ProducerFenced, KafkaUnreachable.
        """
        writer = self._writer
        if writer is None:
            raise ProducerFenced(self.topic)
        try:
            if self._broken:
                writer.abort(_CALL_S)
                self._open = self._broken = False
            if not self._open:
                writer.begin()
                self._open = True
                writer.hand_over(self.topic, claim.encode(), b"server", 0, wait_s=_CALL_S)
            writer.commit(_CALL_S)
            self._open = False
        except KafkaException as problem:
            raise self._failure(problem) from problem
        self._journal.stop_reading()  # who writes need not read

    def close(self) -> None:
        """Let go of the connections; what is open is left to the brokers."""
        self._journal.close()
        self._writer = None
        self._open = self._broken = False

    def _failure(self, problem: KafkaException) -> ProducerFenced | KafkaUnreachable:
        error = error_of(problem)
        if is_fenced(problem) or error.fatal():
            return ProducerFenced(self.topic)
        self._broken = self._broken or error.txn_requires_abort()
        return KafkaUnreachable(self._settings.bootstrap, error.str())
