"""The configuration of Kafka's clients, tried before anything is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from ksql.core.errors import StartError
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.record_writer import RecordWriter
from ksql.kafka.settings import KafkaSettings, is_client_property

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ksql.kafka.settings import Config

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
