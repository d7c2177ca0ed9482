"""Records with the timestamp 0, the epoch itself.

librdkafka takes a 0 for "no timestamp given" and writes the present time instead. Such records are
rare but legal, and ROWTIME must travel: they leave through kafka-python's producer, which writes
the time it is given.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.base.records import Written
from ksql.kafka.errors import WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ksql.base.records import Headers

_DELIVERY: Final = "delivery_timeout_ms"
_DELIVERY_MS: Final = "30000"
_LIFE_S: Final = 30.0
_CLOSE_S: Final = 10.0
_TOO_LARGE = "Broker: Message size too large"
_NAMES = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "delivery.timeout.ms": _DELIVERY,
}
_log = logging.getLogger(__name__)

_Config = tuple[tuple[str, str], ...]


class EpochTooLarge(WriteFailed):
    """A record that is larger than its topic, or a client, ever takes."""


class _Value(NamedTuple):
    """A value, or none: ``send`` refuses a record without key and value, which is legal.

    It is unpacked behind that check, where the library asks for the value's bytes.
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
    partition: int | None = None,
) -> Written:
    """Write one record with the timestamp 0 and wait for its acknowledgement.

    Without a ``partition`` the key decides it.

    Returns: where it is.
    Raises: EpochTooLarge, WriteFailed.
    """
    errors = importlib.import_module("kafka.errors")
    known = {ours: str(config[name]) for name, ours in _NAMES.items() if name in config}
    delivery_ms = int(known.setdefault(_DELIVERY, _DELIVERY_MS))
    try:
        with _producers.lent(tuple(known.items())) as producer:
            sent = producer.send(
                topic,
                value=_Value(value),
                key=key,
                headers=_filled(headers),
                partition=partition,
                timestamp_ms=0,
            )
            told = sent.get(timeout=2 * delivery_ms / 1000)
    except errors.KafkaError as error:
        if isinstance(error, errors.MessageSizeTooLargeError):
            raise EpochTooLarge(topic, _TOO_LARGE) from error
        raise WriteFailed(topic, str(error)) from error
    return Written(topic, told.partition, told.offset + 1)


def _filled(headers: Headers | None) -> Headers:
    """Fill headers without value, which this library does not know: theirs are empty."""
    return [(name, b"" if value is None else value) for name, value in headers or ()]


def close() -> None:
    """Close the connections of this process; they are opened anew when needed."""
    _producers.close()


@dataclass(slots=True)
class _Open:
    """A producer, and how many use it now."""

    client: Any
    end: threading.Timer
    users: int = 0
    retired: bool = False


class _Producers:
    """The producers of this process: one for each configuration, and none for long.

    An open one keeps asking for every topic that it has ever written to, and ten times a second
    for one that has been deleted.
    """

    def __init__(self, life_s: float = _LIFE_S) -> None:
        self._life_s = life_s
        self._lock = threading.Lock()
        self._open: dict[_Config, _Open] = {}

    @contextlib.contextmanager
    def lent(self, config: _Config) -> Iterator[Any]:
        """Lend a producer, to several threads at a time; after an error it takes no more."""
        with self._lock:
            held = self._open.get(config) or self._opened(config)
            held.users += 1
        try:
            yield held.client
        except BaseException:
            self._retire(config, held)
            raise
        finally:
            with self._lock:
                held.users -= 1
            self._close_unused(held)

    def close(self) -> None:
        """Close them all, those in use when they are given back."""
        for config, held in list(self._open.items()):
            self._end(config, held)

    def _opened(self, config: _Config) -> _Open:
        client = _producer(config)
        held = _Open(client, threading.Timer(self._life_s, lambda: self._end(config, held)))
        held.end.daemon = True
        held.end.start()
        self._open[config] = held
        return held

    def _end(self, config: _Config, held: _Open) -> None:
        """Close it, or have its last user do so."""
        self._retire(config, held)
        self._close_unused(held)

    def _retire(self, config: _Config, held: _Open) -> None:
        """Lend it no more."""
        with self._lock:
            held.retired = True
            if self._open.get(config) is held:
                del self._open[config]

    def _close_unused(self, held: _Open) -> None:
        with self._lock:
            unused = held.retired and not held.users
        if unused:
            held.end.cancel()
            try:
                held.client.close(timeout=_CLOSE_S)
            except importlib.import_module("kafka.errors").KafkaError:
                _log.exception("producer_not_closed")


_producers = _Producers()


def _producer(config: _Config) -> Any:
    library = importlib.import_module("kafka")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its errors are raised to the writer
    unpacking = type("Unpacking", (library.Serializer,), {"serialize": staticmethod(_unpack)})
    given: dict[str, Any] = dict(config)
    given[_DELIVERY] = delivery_ms = int(given[_DELIVERY])
    return library.KafkaProducer(
        **given,
        request_timeout_ms=max(delivery_ms // 3, 1),
        max_block_ms=delivery_ms,
        acks="all",
        linger_ms=0,
        value_serializer=unpacking(),
        kafka_client=_client,
    )


def _client(**configs: Any) -> Any:
    """Return the library's client, which makes no topics: it does not pass that setting on."""
    client = importlib.import_module("kafka.net.compat").KafkaNetClient(**configs)
    client.cluster.config["allow_auto_create_topics"] = False
    return client
