"""The service's schema registry: the one that is configured, or its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.base.access import Access
from ksql.base.errors import StartError
from ksql.ledger.database import default_url
from ksql.ledger.schemastore import SchemaStore
from ksql.registry.local import LocalRegistry
from ksql.registry.server import RegistryServer
from ksql.registry.subjects import Subjects
from ksql.topics.registry import Registry
from ksql.topics.registry_client import RegistrySettings, registry_of

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.base.config import Settings

URL: Final = "ksql.schema.registry.url"
LISTENER: Final = "ksql.schema.registry.listener"


class BadRegistryListener(StartError):
    """An address that the embedded registry cannot be given."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{LISTENER} '{given}' is not an address",
            hint=f"Example: {LISTENER}=http://127.0.0.1:8081",
        )


@dataclass(frozen=True)
class OpenRegistry:
    """A registry in use.

    ``settings`` say where other processes find it; ``registry`` is how this one asks it: the
    embedded one without HTTP.
    """

    settings: RegistrySettings
    registry: Registry
    embedded: bool
    close: Callable[[], None]


def open_registry(settings: Settings, state: Path) -> OpenRegistry:
    """Find the configured registry, or start the embedded one over the ledger's database.

    Raises: BadRegistryListener, RegistryPortInUse.
    """
    found = RegistrySettings.from_properties(settings.server)
    if found is not None:
        return OpenRegistry(found, registry_of(found), embedded=False, close=lambda: None)
    host, port = _listener(settings.text(LISTENER))
    store = SchemaStore(settings.text("ksql.ledger.url") or default_url(state))
    subjects = Subjects(store)
    access = Access.of(settings, (host,))
    server = RegistryServer(subjects, host, port, state / "registry.port", access)
    url = server.start()

    def close() -> None:
        server.stop()
        store.close()

    return OpenRegistry(RegistrySettings(url), LocalRegistry(subjects), embedded=True, close=close)


def _listener(given: str) -> tuple[str, int]:
    url = urlsplit(given)
    try:
        port = url.port
    except ValueError as error:
        raise BadRegistryListener(given) from error
    if url.scheme != "http" or url.hostname is None:
        raise BadRegistryListener(given)
    return url.hostname, port or 0
