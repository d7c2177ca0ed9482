"""The server's configuration, checked as a whole before anything is started.

Types and bounds of single properties are checked where the configuration is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ksql.app.exposure import check_exposure
from ksql.cluster.replicas.cluster import own_server
from ksql.control.log.quarantine import SKIP, offsets_of
from ksql.core.errors import StartError
from ksql.core.statedir import directory
from ksql.exec.dataflow import topic_acl
from ksql.history.database import configured_url
from ksql.http.access import ADVERTISED, INTERNAL
from ksql.kafka.client_properties import check_clients
from ksql.registry.registry import check_listener

if TYPE_CHECKING:
    from ksql.core.config import Settings


SHARED: Final = "ksql.state.shared"
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - what a listener may be, not an address


class CannotShare(StartError):
    """A server that the others of its service could not find, or that would be alone."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{SHARED} is set, but {reason}", hint=hint)


def place_name(settings: Settings) -> str:
    """Return the name of this server's own place in a shared state directory."""
    server = own_server(settings)
    return re.sub(r"[^\w.-]", "_", f"{server.host}_{server.port}")


def check_configuration(settings: Settings) -> None:
    """Refuse values that some part of the service could not use.

    Raises: BadTopicPattern, BadSkip, BadRegistryListener, CannotShare, BadSecretFile, BadLedgerUrl,
        SparkOpen, BadSparkSecret, EmbeddedOpen, BadClientProperty and the other errors of Kafka's
        settings.
    """
    if settings.flag(SHARED):
        _check_shared(settings)
    topic_acl.check_patterns(settings)
    offsets_of(settings.text(SKIP))
    check_listener(settings)
    check_exposure(settings)
    check_clients(settings.server)
    configured_url(settings, directory(settings))


def _check_shared(settings: Settings) -> None:
    if not settings.text("bootstrap.servers"):
        raise CannotShare(
            "bootstrap.servers is not", "The embedded broker would be this server's alone."
        )
    server = own_server(settings)
    if server.host in _ANY_ADDRESS:
        raise CannotShare(
            f"{server.host} is no address by which the other servers could reach this one",
            f"Name it in {ADVERTISED}, such as http://10.0.0.7:8088.",
        )
    if server.port == 0:
        raise CannotShare(
            "the other servers cannot know this one's port",
            f"Name it in listeners, {INTERNAL} or {ADVERTISED}, such as http://10.0.0.7:8088.",
        )
