"""The service's schema registry: the one that is configured, or its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.core import StartError
from ksql.formats import Registry
from ksql.history import configured_url
from ksql.http import Access
from ksql.kafka import RegistrySettings, registry_of
from ksql.registry.claim import claim
from ksql.registry.kafkalog import KafkaSchemaLog
from ksql.registry.local import LocalRegistry
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaLog, SchemaStore
from ksql.registry.subjects import Subjects

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.core import Settings
    from ksql.kafka import KafkaSettings

URL: Final = "ksql.schema.registry.url"
LISTENER: Final = "ksql.schema.registry.listener"
TOPIC: Final = "ksql.schema.registry.topic"

_REPLICAS: Final = "ksql.internal.topic.replicas"
_CLOSED: Final = re.compile(r"_schemas[a-zA-Z0-9._-]*")


class BadRegistryListener(StartError):
    """An address that the embedded registry cannot be given."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{LISTENER} '{given}' is not an address",
            hint=f"Example: {LISTENER}=http://127.0.0.1:8081",
        )


class BadRegistryTopic(StartError):
    """A topic that statements could read and write like any other."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{TOPIC} '{given}' is not the name of a topic for schemas",
            detail="Statements are kept from topics whose names begin with _schemas, not from it.",
            hint=f"Example: {TOPIC}=_schemas_of_my_service",
        )


@dataclass(frozen=True)
class OpenRegistry:
    """A registry in use.

    ``settings`` say where other processes find it; ``registry`` is how this one asks it: the
    embedded one, whose schemas are in ``topic``, without HTTP.
    """

    settings: RegistrySettings
    registry: Registry
    topic: str
    close: Callable[[], None]


def kafka_log(settings: Settings, kafka: KafkaSettings) -> KafkaSchemaLog:
    """Return the topic of the embedded registry, made if need be.

    Raises: BadRegistryTopic, UnfitRegistryTopic, KafkaUnreachable.
    """
    topic = settings.text(TOPIC)
    if not _CLOSED.fullmatch(topic):
        raise BadRegistryTopic(topic)
    log = KafkaSchemaLog(kafka, topic, settings.number(_REPLICAS))
    try:
        log.open()
    except BaseException:
        log.close()
        raise
    return log


def open_registry(
    settings: Settings, state: Path, open_log: Callable[[], SchemaLog]
) -> OpenRegistry:
    """Find the configured registry, or start the embedded one over the log that is opened.

    Raises: BadRegistryListener, REGISTRY_PORT_IN_USE, StoreFailed and what ``claim`` raises.
    """
    found = RegistrySettings.from_properties(settings.server)
    if found is not None:
        return OpenRegistry(found, registry_of(found), topic="", close=lambda: None)
    host, port = _listener(settings.text(LISTENER))
    store = SchemaStore(open_log())
    subjects = Subjects(store)
    access = Access.of(settings, (host,))
    server = RegistryServer(subjects, host, port, state / "registry.port", access)
    try:
        claim(store, configured_url(settings, state), take_over=TOPIC in settings.server)
        url = server.start()
    except BaseException:
        store.close()
        raise

    def close() -> None:
        server.stop()
        store.close()

    topic = settings.text(TOPIC)
    return OpenRegistry(RegistrySettings(url), LocalRegistry(subjects), topic=topic, close=close)


def check_listener(settings: Settings) -> None:
    """Refuse an address at which the embedded registry, if there is to be one, could not listen.

    Raises: BadRegistryListener.
    """
    if not settings.text(URL):
        _listener(settings.text(LISTENER))


def _listener(given: str) -> tuple[str, int]:
    url = urlsplit(given)
    try:
        port = url.port
    except ValueError as error:
        raise BadRegistryListener(given) from error
    if url.scheme != "http" or url.hostname is None:
        raise BadRegistryListener(given)
    return url.hostname, port or 0
