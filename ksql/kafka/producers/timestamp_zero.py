"""Writes records with the timestamp 0 by kafka-python, with Kafka's security settings for it.

librdkafka takes a 0 for "no timestamp given" and writes the present time instead. Such records are
rare but legal, and ROWTIME must travel: they leave through kafka-python's producer, which writes
the time it is given.

The security is the same as for librdkafka, or an error.

It writes the records of the epoch only, so that a difference would be found long after the start.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import ssl
import tempfile
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.core import Written
from ksql.kafka.errors import WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.core import Headers, OutRecord


PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CA: Final = ("ssl.ca.location", "ssl.ca.pem")
_CHAIN: Final = ("ssl.certificate.location", "ssl.certificate.pem")
_KEY: Final = ("ssl.key.location", "ssl.key.pem")
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a property's name
_NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_CIPHERS: Final = "ssl.cipher.suites"
_STORE: Final = "ssl.keystore.location"
TAKEN: Final = (*_CA, *_CHAIN, *_KEY, _PASSWORD, _NAME_CHECK, _CIPHERS)
"""The properties of librdkafka that make the context."""


def hindrance(config: Mapping[str, object]) -> str:
    """Return what of a configuration kafka-python cannot do; empty if it can do all."""
    protocol = str(config.get(PROTOCOL, "")).upper()
    mechanism = str(config.get(_MECHANISM, "PLAIN"))
    if protocol.startswith("SASL") and mechanism not in _MECHANISMS:
        return f"{_MECHANISM}={mechanism} is not one of {', '.join(_MECHANISMS)}"
    if protocol.endswith("SSL") and _STORE in config:
        return f"{_STORE} is a PKCS12 file; PEM files can be read"
    return ""


def context(config: Mapping[str, object]) -> ssl.SSLContext | None:
    """Return TLS as the properties ask for it; None for a protocol without.

    Raises: OSError, ssl.SSLError.
    """
    if not str(config.get(PROTOCOL, "")).upper().endswith("SSL"):
        return None
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls_context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls_context.check_hostname = str(config.get(_NAME_CHECK, "https")) != "none"
    _trust(tls_context, config)
    _show(tls_context, config)
    if _CIPHERS in config:
        tls_context.set_ciphers(str(config[_CIPHERS]))
    return tls_context


def _trust(tls_context: ssl.SSLContext, config: Mapping[str, object]) -> None:
    location, text = (config.get(name) for name in _CA)
    if text is not None:
        tls_context.load_verify_locations(cadata=str(text))
    elif location is not None and Path(str(location)).is_dir():
        tls_context.load_verify_locations(capath=str(location))
    elif location is not None:
        tls_context.load_verify_locations(cafile=str(location))
    else:
        tls_context.load_default_certs()


def _show(tls_context: ssl.SSLContext, config: Mapping[str, object]) -> None:
    """Load this client's own certificate; texts through files, as ``ssl`` reads no others."""
    if not any(name in config for name in _CHAIN):
        return
    password = str(config.get(_PASSWORD, ""))  # none at all: OpenSSL would ask the terminal
    with tempfile.TemporaryDirectory(prefix="ksql-") as folder:
        chain = _file(config, _CHAIN, Path(folder) / "chain.pem")
        key = _file(config, _KEY, Path(folder) / "key.pem")
        tls_context.load_cert_chain(chain or "", key, password)


def _file(config: Mapping[str, object], names: tuple[str, str], file: Path) -> str | None:
    location, text = (config.get(name) for name in names)
    if text is None:
        return None if location is None else str(location)
    file.touch(mode=0o600)
    file.write_text(str(text), encoding="utf-8")
    return str(file)


_DELIVERY: Final = "delivery_timeout_ms"
_TLS: Final = "tls"
_DELIVERY_MS: Final = 30_000
_LINGER_MS: Final = 1  # records that are handed over together go together
_REQUEST_MS: Final = 30_000
_BLOCK_MS: Final = 60_000
_LIFETIME_S: Final = 30.0
_CLOSE_S: Final = 1.0  # all answers were waited for
_TOO_LARGE = "Broker: Message size too large"
_NAMES = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_NUMBERS = {"delivery.timeout.ms": _DELIVERY, "message.max.bytes": "max_request_size"}
_Config = tuple[tuple[str, object], ...]
_Numbered = tuple[int, "OutRecord"]


class EpochTooLarge(WriteFailed):
    """A record that is larger than its topic, or a client, ever takes."""


class _Value(NamedTuple):
    """A value, or none: ``send`` refuses a record without key and value, which is legal.

    It is unpacked after that check, where the library asks for the value's bytes.
    """

    data: bytes | None


def _unpack(topic: str, headers: Headers, value: _Value) -> bytes | None:
    del topic, headers
    return value.data


def send_at_epoch(
    config: Mapping[str, Any],
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Headers | None,
) -> Written:
    """Write one record with the timestamp 0, where its key decides, and wait for the answer.

    Returns: where it is.
    Raises: EpochTooLarge, WriteFailed.
    """
    (outcome,) = send_from_epoch(config, topic, [(key, value, 0, headers)])
    if isinstance(outcome, EpochTooLarge):
        raise outcome
    return outcome


def send_from_epoch(
    config: Mapping[str, Any],
    topic: str,
    records: Sequence[OutRecord],
    partition: int | None = None,
) -> list[Written | EpochTooLarge]:
    """Write records in their order, whatever their timestamps, and wait for all answers.

    Without a ``partition`` the keys decide it.

    Returns: for each record where it is, or that it is too large.
    Raises: WriteFailed; then some may have been written.
    """
    run = _Run(config, topic, partition)
    numbered = list(enumerate(records))
    for doubtful in run.attempt(numbered):
        run.attempt([doubtful])
    return [run.outcomes[index] for index, _ in numbered]


class _Run:
    """Writes one list of records; ``outcomes`` has what became of each, by its number."""

    def __init__(self, config: Mapping[str, Any], topic: str, partition: int | None) -> None:
        if why := hindrance(config):
            raise WriteFailed(topic, f"a record of the timestamp 0 cannot be written: {why}")
        known = {ours: str(config[name]) for name, ours in _NAMES.items() if name in config}
        numbers = {ours: int(config[name]) for name, ours in _NUMBERS.items() if name in config}
        numbers.setdefault(_DELIVERY, _DELIVERY_MS)
        self._answer_s = 2 * numbers[_DELIVERY] / 1000
        tls = [(name, str(config[name])) for name in TAKEN if name in config]
        self._config = (*known.items(), *numbers.items(), (_TLS, tuple(tls)))
        self._topic = topic
        self._partition = partition
        self.outcomes: dict[int, Written | EpochTooLarge] = {}

    def attempt(self, records: list[_Numbered]) -> list[_Numbered]:
        """Write them; return those of which it is open whether they are too large.

        Kafka-python's idempotent producer fails all that is under way as too large when the broker
        refuses one record. Only one that was alone is known to be the reason. Some of the others
        may have been written: then they are written twice.

        Raises: WriteFailed.
        """
        errors = importlib.import_module("kafka.errors")
        left: list[_Numbered] = []
        try:
            with _producers.lent(self._config) as held:
                under_way = [(record, self._begun(held.client, record)) for record in records]
                for record, sent in under_way:
                    try:
                        self._note(record[0], sent)
                    except errors.MessageSizeTooLargeError:
                        held.retired = True
                        left.append(record)
        except (errors.KafkaError, OSError) as error:  # also of a certificate that is gone
            raise WriteFailed(self._topic, str(error)) from error
        if left and len(records) == 1:
            self.outcomes[left.pop()[0]] = EpochTooLarge(self._topic, _TOO_LARGE)
        return left

    def _begun(self, producer: Any, numbered: _Numbered) -> Any:
        """Hand a record over; return its answer to come, or None if the client says too large."""
        index, (key, value, timestamp, headers) = numbered
        try:
            return producer.send(
                self._topic,
                value=_Value(value),
                key=key,
                headers=_non_null_headers(headers),
                partition=self._partition,
                timestamp_ms=timestamp,
            )
        except importlib.import_module("kafka.errors").MessageSizeTooLargeError:
            self.outcomes[index] = EpochTooLarge(self._topic, _TOO_LARGE)
            return None

    def _note(self, index: int, sent: Any) -> None:
        if sent is not None:
            metadata = sent.get(timeout=self._answer_s)
            self.outcomes[index] = Written(self._topic, metadata.partition, metadata.offset + 1)


def _non_null_headers(headers: Headers | None) -> Headers:
    """Fill headers without value, which this library does not know: theirs are empty."""
    return [(name, b"" if value is None else value) for name, value in headers or ()]


def close() -> None:
    """Close the connections of this process; they are opened again when needed."""
    _producers.close()


def renew() -> None:
    """Have later records go by new connections, as what the open ones know of a topic is old."""
    _producers.renew()


@dataclass(slots=True)
class _Open:
    """A producer; ``ends`` makes it a retired one when it is old."""

    client: Any
    ends: threading.Timer
    generation: int
    retired: bool = False


class _Producers:
    """The producers of this process; each serves one thread at a time, and none lives for long.

    An open one keeps asking for every topic that it has ever written to, and ten times a second
    for one that has been deleted.
    """

    def __init__(self, lifetime_s: float = _LIFETIME_S) -> None:
        self._lifetime_s = lifetime_s
        self._lock = threading.Lock()
        self._free: dict[_Config, list[_Open]] = defaultdict(list)
        self._generation = 0

    @contextlib.contextmanager
    def lent(self, config: _Config) -> Iterator[_Open]:
        """Lend a producer; after an error, and when it is retired, it is closed."""
        with self._lock:
            free = self._free[config]
            held = free.pop() if free else None
        held = held or self._opened(config)
        try:
            yield held
        except BaseException:
            held.retired = True
            raise
        finally:
            with self._lock:
                ended = held.retired or held.generation != self._generation
                if not ended:
                    self._free[config].append(held)
            if ended:
                self._close(held)

    def renew(self) -> None:
        """Close those that nobody has now, the others when they are given back."""
        with self._lock:
            self._generation += 1
        self.close()

    def close(self) -> None:
        """Close those that nobody has."""
        with self._lock:
            idle = [held for free in self._free.values() for held in free]
            self._free.clear()
        for held in idle:
            self._close(held)

    def _opened(self, config: _Config) -> _Open:
        with self._lock:
            generation = self._generation
        client = _producer(config)
        ends = threading.Timer(self._lifetime_s, lambda: self._retire(config, held))
        held = _Open(client, ends, generation)
        held.ends.daemon = True
        held.ends.start()
        return held

    def _retire(self, config: _Config, held: _Open) -> None:
        with self._lock:
            held.retired = True
            free = held in self._free[config]
            if free:
                self._free[config].remove(held)
        if free:
            self._close(held)

    def _close(self, held: _Open) -> None:
        held.ends.cancel()
        try:
            held.client.close(timeout=_CLOSE_S)
        except importlib.import_module("kafka.errors").KafkaError:
            # its records were given up, but it would still write them when Kafka is back
            sender = held.client._sender  # noqa: SLF001 there is no other way
            sender.force_close()
            sender.join(_CLOSE_S)
            held.client.close(timeout=_CLOSE_S)


_producers = _Producers()


def _producer(config: _Config) -> Any:
    library = importlib.import_module("kafka")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its errors are raised to the writer
    unpacking = type("Unpacking", (library.Serializer,), {"serialize": staticmethod(_unpack)})
    given: dict[str, Any] = dict(config)
    protocol = {PROTOCOL: given.get("security_protocol", "")}
    given["ssl_context"] = context({**protocol, **dict(given.pop(_TLS, ()))})
    delivery_ms = given[_DELIVERY]
    return library.KafkaProducer(
        **given,
        request_timeout_ms=max(min(delivery_ms // 3, _REQUEST_MS), 1),
        max_block_ms=min(delivery_ms, _BLOCK_MS),
        bootstrap_timeout_ms=min(delivery_ms, _REQUEST_MS),
        acks="all",
        linger_ms=_LINGER_MS,
        value_serializer=unpacking(),
        kafka_client=_client,
    )


def _client(**configs: Any) -> Any:
    """Return the library's client, which makes no topics: it does not pass that setting on."""
    client = importlib.import_module("kafka.net.compat").KafkaNetClient(**configs)
    client.cluster.config["allow_auto_create_topics"] = False
    return client
