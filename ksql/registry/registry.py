"""The service's schema registry: the one that is configured, or its own.

The topic of the embedded registry becomes this service's own, once. Versions before format zero
kept schemas in the ledger's database; those that followed moved them to the topic. A database
whose schemas were never moved is refused: their ids would be given again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.core import StartError, versioned_json
from ksql.formats import Registry
from ksql.history import LedgerUnavailable, configured_url, holds_schemas, shown, sqlite_path
from ksql.http import Access
from ksql.kafka import RegistrySettings, registry_of
from ksql.registry.kafkalog import KafkaSchemaLog
from ksql.registry.local import LocalRegistry
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaLog, SchemaStore
from ksql.registry.subjects import Subjects

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.core import Settings
    from ksql.kafka import KafkaSettings
    from ksql.registry.state import Draft


class SchemasOutOfReach(StartError):
    """The database that may still hold schemas cannot be read."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"whether the ledger's database {where} holds schemas cannot be read",
            detail=f"{reason}\nIf it does, their ids would be given to other schemas, and records"
            " that carry them would be misread.",
            hint="Make the database readable and start again; "
            "or move it away, if no schema was ever registered there.",
        )


class SchemasLeftInLedger(StartError):
    """A database with schemas of a version before format zero."""

    def __init__(self, where: str) -> None:
        super().__init__(
            versioned_json.before_format_zero(
                f"the schema registry in the ledger's database {where}"
            ),
            detail="Without its schemas their ids would be given to others, and records that carry "
            "them would be misread.",
            hint=f"Start {versioned_json.ZERO_READER} with it once, "
            "which moves the schemas to Kafka.",
        )


class SchemasOfAnother(StartError):
    """The topic belongs to a registry that may be running."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds the schemas of another registry",
            detail="Two registries that do not know of each other would overwrite their schemas,"
            " and records that use them would be misread.",
            hint="Name that registry in ksql.schema.registry.url; or a topic of its own for the"
            " embedded one in ksql.schema.registry.topic, such as _schemas_ksql; or, if that"
            " registry runs no more, its topic there, to take it over.",
        )


def claim(store: SchemaStore, ledger_url: str, *, take_over: bool = False) -> None:
    """Note in the topic that it is this service's; ``take_over``: even if it is another one's.

    Raises: SchemasOfAnother, SchemasOutOfReach, SchemasLeftInLedger, StoreFailed.
    """
    state = store.open()
    if state.memory.moved_in:
        return
    if state.all_versions() and not take_over:
        raise SchemasOfAnother(store.where)
    _check_ledger(ledger_url)

    def note(draft: Draft) -> None:
        if not draft.memory.moved_in:  # else a server that starts at the same time has
            draft.put(replace(draft.memory, moved_in=True))

    store.write(note)


def _check_ledger(url: str) -> None:
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return
    try:
        left = holds_schemas(url)
    except LedgerUnavailable as error:
        raise SchemasOutOfReach(shown(url), error.text()) from error
    if left:
        raise SchemasLeftInLedger(shown(url))


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
    configured = RegistrySettings.from_properties(settings.server)
    if configured is not None:
        return OpenRegistry(configured, registry_of(configured), topic="", close=lambda: None)
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
