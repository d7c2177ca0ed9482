"""Kafka's client properties: Java's names to librdkafka's, tried before anything is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from ksql.core import NO_BROKER, InvalidProperty, StartError
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.record_writer import RecordWriter

Config = dict[str, str | int | float | bool]

_SAME: Final = frozenset(
    {
        "acks",
        "batch.size",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.type",
        "connections.max.idle.ms",
        "delivery.timeout.ms",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "message.max.bytes",
        "metadata.max.age.ms",
        "partitioner",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.mechanism",
        "sasl.kerberos.service.name",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "session.timeout.ms",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "transaction.timeout.ms",
    }
)
_PRODUCER_ONLY: Final = frozenset(
    {
        "acks",
        "batch.size",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "partitioner",
        "retries",
        "request.timeout.ms",
        "transaction.timeout.ms",
        "queue.buffering.max.kbytes",
    }
)
_CONSUMER_ONLY: Final = frozenset(
    {
        "fetch.max.bytes",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "session.timeout.ms",
    }
)
_RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_PEM_FILES: Final[Mapping[str, str]] = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAAS = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))")
_SCOPES: Final = {
    "producer": ("ksql.streams.producer.", "ksql.streams.", ""),
    "consumer": ("ksql.streams.consumer.", "ksql.streams.", ""),
    "admin": ("ksql.streams.admin.", "ksql.streams.", ""),
}

_TIMEOUT: Final = "default.api.timeout.ms"
_QUIET: Final[Config] = {"log_level": 0, "allow.auto.create.topics": False}
_PRODUCER: Final[Config] = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # a Java client's partition for the same key
    "linger.ms": 5,
    # a topic that others delete and create again has other partitions; by default it is looked at
    # every five minutes
    "topic.metadata.refresh.interval.ms": 10_000,
}
_CONSUMER: Final[Config] = {
    "group.id": "ksql-reader",  # partitions are assigned; the group is never joined
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 100,
    "isolation.level": "read_committed",
}


class KeystoreNotSupported(StartError):
    """A Java key store, which only Java reads."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} names a Java key store, which is not supported",
            hint="Use PEM files, which all clients read: ssl.truststore.type=PEM with "
            "ssl.truststore.location, ssl.keystore.type=PEM with ssl.keystore.location.",
        )


class BadTimeout(StartError):
    """A time that is none."""

    def __init__(self, value: str) -> None:
        super().__init__(f"{_TIMEOUT} must be a number of milliseconds above 0, not '{value}'")


@dataclass(frozen=True)
class KafkaSettings:
    """Where the brokers are and how to talk to them."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 30.0  # how long a call is retried before the brokers count as unreachable

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> KafkaSettings:
        """Read the service's properties: plain client names and those under ``ksql.streams.``.

        ``default.api.timeout.ms`` says how long the brokers may be out of reach.

        Raises: NO_BROKER, KeystoreNotSupported, BadTimeout.
        """
        texts = {name: str(value) for name, value in properties.items() if value is not None}
        bootstrap = texts.get("bootstrap.servers") or texts.get("ksql.streams.bootstrap.servers")
        if not bootstrap:
            raise NO_BROKER()
        settings = cls(bootstrap, texts, _patience_s(texts))
        settings.admin()
        return settings

    def producer(self, **more: str | float | bool) -> Config:
        """Return the configuration of a producer: idempotent, Java's partitions."""
        return {**self._base(), **_PRODUCER, **self._chosen("producer"), **more}

    def consumer(self, **more: str | float | bool) -> Config:
        """Return the configuration of a consumer of assigned partitions, read_committed."""
        return {**self._base(), **_CONSUMER, **self._chosen("consumer"), **more}

    def admin(self) -> Config:
        """Return the configuration of an admin client."""
        return {**_QUIET, **self._chosen("admin"), "bootstrap.servers": self.bootstrap}

    def _base(self) -> Config:
        return {**_QUIET, "bootstrap.servers": self.bootstrap}

    def _chosen(self, role: str) -> Config:
        """Return the properties for that kind of client; the longest prefix wins."""
        foreign = {
            "producer": _CONSUMER_ONLY,
            "consumer": _PRODUCER_ONLY,
            "admin": _CONSUMER_ONLY | _PRODUCER_ONLY,
        }[role]
        chosen: Config = {}
        for prefix in reversed(_SCOPES[role]):
            for name, value in self.properties.items():
                if name.startswith(prefix):
                    for client_name, client_value in self._translate(name[len(prefix) :], value):
                        if client_name not in foreign:
                            chosen[client_name] = client_value
        return chosen

    def _translate(self, name: str, value: str) -> list[tuple[str, str]]:
        if special := _SPECIAL.get(name):
            return special(value)
        if name in _PEM_FILES:
            return [(_PEM_FILES[name], self._pem(name, value))]
        if name == "ssl.keystore.location":
            if self._store_type("keystore") == "PKCS12":
                return [(name, value)]
            return [(target, self._pem(name, value)) for target in _KEYSTORE]
        renamed = _RENAMED.get(name, name)
        return [(renamed, value)] if name in _SAME or name in _RENAMED else []

    def _pem(self, name: str, value: str) -> str:
        kind = "truststore" if "truststore" in name else "keystore"
        if name.endswith("location") and self._store_type(kind) != "PEM":
            raise KeystoreNotSupported(name)
        return value

    def _store_type(self, kind: str) -> str:
        return self.properties.get(f"ssl.{kind}.type", "JKS").upper()


def is_client_property(name: str) -> bool:
    """Return whether the service's clients of Kafka take the name, with or without prefix."""
    prefixes = {prefix for scope in _SCOPES.values() for prefix in scope}
    return name.startswith(_SECURITY) or any(
        name.startswith(prefix) and name.removeprefix(prefix) in _READ for prefix in prefixes
    )


def _patience_s(texts: Mapping[str, str]) -> float:
    for prefix in _SCOPES["admin"]:
        value = texts.get(f"{prefix}{_TIMEOUT}")
        if value is not None:
            if not value.isdecimal() or not int(value):
                raise BadTimeout(value)
            return int(value) / 1000
    return KafkaSettings.timeout_s


_KEYSTORE: Final = ("ssl.certificate.location", "ssl.key.location")


def _jaas(value: str) -> list[tuple[str, str]]:
    """Return user and password of a login module's line."""
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single or bare)
        for name, double, single, bare in _JAAS.findall(value)
    }
    targets = {"username": "sasl.username", "password": "sasl.password"}
    return [(target, options[name]) for name, target in targets.items() if name in options]


def _endpoint(value: str) -> list[tuple[str, str]]:
    return [("ssl.endpoint.identification.algorithm", value or "none")]


def _memory(value: str) -> list[tuple[str, str]]:
    if not value.isdecimal():
        raise InvalidProperty("buffer.memory", value, "a whole number of bytes")
    return [("queue.buffering.max.kbytes", str(max(1, int(value) // 1024)))]


_SPECIAL: Final[Mapping[str, Callable[[str], list[tuple[str, str]]]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.endpoint.identification.algorithm": _endpoint,
    "buffer.memory": _memory,
}
_SECURITY: Final = ("security.", "sasl.", "ssl.")  # Spark's Java client takes these as they are
_READ: Final = frozenset(
    {
        *_SAME,
        *_RENAMED,
        *_SPECIAL,
        *_PEM_FILES,
        _TIMEOUT,
        "isolation.level",
        "ssl.keystore.location",
    }
)


_NO_BROKER: Final = "none:0"  # a client that is made and dropped connects to nobody
_BOOTSTRAP: Final = "bootstrap.servers"


class BadClientProperty(StartError):
    """Properties of Kafka's clients that these do not take."""

    def __init__(self, names: tuple[str, ...], reason: str) -> None:
        named = f": {', '.join(names)}" if names else ""
        super().__init__(f"Kafka's client refuses its configuration{named}", detail=reason)


def check_clients(properties: Mapping[str, str]) -> None:
    """Make each kind of client once, without brokers, to see whether it takes the properties.

    Raises: BadClientProperty, which names those that are refused even alone, and what
        ``KafkaSettings.from_properties`` raises.
    """
    reason = _refusal(properties)
    if reason:
        given = {name: value for name, value in properties.items() if is_client_property(name)}
        alone = tuple(name for name, value in given.items() if _refusal({name: value}))
        raise BadClientProperty(alone, reason)


def _refusal(properties: Mapping[str, str]) -> str:
    settings = KafkaSettings.from_properties({**properties, _BOOTSTRAP: _NO_BROKER})
    clients: tuple[tuple[Callable[..., Any], Config], ...] = (
        (RecordWriter, settings.producer()),
        (lambda config: Consumer(config, logger=CLIENT_LOG), settings.consumer()),
        (lambda config: AdminClient(config, logger=CLIENT_LOG), settings.admin()),
    )
    for make, config in clients:
        del config[_BOOTSTRAP]
        try:
            make(config)
        except KafkaException as error:
            return str(error.args[0].str()).strip()
    return ""
