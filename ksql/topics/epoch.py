"""Records with the timestamp 0, the epoch itself.

librdkafka takes a 0 for "no timestamp given" and writes the present time instead. Such records are
rare but legal, and ROWTIME must travel: they leave through kafka-python's producer, which writes
what it is told.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ksql.base.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.processors.base import Headers

_TIMEOUT_S = 30.0
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


class EpochWriteFailed(ServerError):
    """A record with the timestamp 0 that the brokers did not take."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(f'cannot write to topic "{topic}"', detail=reason)


def send_at_epoch(
    config: Mapping[str, Any],
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Headers | None,
) -> None:
    """Write one record with the timestamp 0 and wait for its acknowledgement.

    Raises: EpochWriteFailed.
    """
    known = tuple(sorted((ours, str(config[n])) for n, ours in _NAMES.items() if n in config))
    try:
        sent = _producer(known).send(
            topic, value=value, key=key, headers=list(headers or ()), timestamp_ms=0
        )
        sent.get(timeout=_TIMEOUT_S)
    except importlib.import_module("kafka.errors").KafkaError as error:
        raise EpochWriteFailed(topic, str(error)) from error


@lru_cache(maxsize=4)
def _producer(config: tuple[tuple[str, str], ...]) -> Any:
    library = importlib.import_module("kafka")
    return library.KafkaProducer(**dict(config), acks="all", linger_ms=0)
