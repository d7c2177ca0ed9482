"""Records with the timestamp 0, the epoch itself.

librdkafka takes a 0 for "no timestamp given" and writes the present time instead. Such records are
rare but legal, and ROWTIME must travel: they leave through kafka-python's producer, which writes
the time it is given.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.base.records import Written
from ksql.kafka.errors import WriteFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.base.records import Headers

_TIMEOUT_S = 30.0
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
}
_producers: dict[tuple[tuple[str, str], ...], Any] = {}


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
    known = tuple(sorted((ours, str(config[n])) for n, ours in _NAMES.items() if n in config))
    try:
        sent = _producer(known).send(
            topic,
            value=_Value(value),
            key=key,
            headers=_filled(headers),
            partition=partition,
            timestamp_ms=0,
        )
        told = sent.get(timeout=_TIMEOUT_S)
    except errors.KafkaError as error:
        _producers.pop(known).close(timeout=0)  # it takes nothing more after an error
        if isinstance(error, errors.MessageSizeTooLargeError):
            raise EpochTooLarge(topic, _TOO_LARGE) from error
        raise WriteFailed(topic, str(error)) from error
    return Written(topic, told.partition, told.offset + 1)


def _filled(headers: Headers | None) -> Headers:
    """Fill headers without value, which this library does not know: theirs are empty."""
    return [(name, b"" if value is None else value) for name, value in headers or ()]


def close() -> None:
    """Close the connections of this process; they are opened anew when needed."""
    while _producers:
        _, producer = _producers.popitem()
        producer.close(timeout=_TIMEOUT_S)


def _producer(config: tuple[tuple[str, str], ...]) -> Any:
    if config not in _producers:
        library = importlib.import_module("kafka")
        unpacking = type("Unpacking", (library.Serializer,), {"serialize": staticmethod(_unpack)})
        _producers[config] = library.KafkaProducer(
            **dict(config), acks="all", linger_ms=0, value_serializer=unpacking()
        )
    return _producers[config]
