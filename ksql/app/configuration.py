"""Checks the server's configuration as a whole before a start, and refuses open ports.

Types and bounds of single properties are checked where the configuration is read.

Open ports without a password are refused, unless an operator states that nobody can reach them.

Spark's ports run the code of anyone who reaches them. The embedded registry, broker and Kafka
Connect know neither users nor TLS.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.app.audit_topic import check_audit
from ksql.cluster.replicas import own_server
from ksql.control.log import SKIP, offsets_of
from ksql.core import StartError, comma_list, directory
from ksql.exec.dataflow import topic_acl
from ksql.history import configured_url
from ksql.http import ADVERTISED, INTERNAL, is_loopback
from ksql.kafka import check_clients
from ksql.kafka.connect import check_connect, is_embedded
from ksql.registry import LISTENER as REGISTRY_LISTENER
from ksql.registry import URL as REGISTRY
from ksql.registry import check_listener
from ksql.spark.session import is_local

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ksql.core import Settings


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
        SparkOpen, BadSparkSecret, EmbeddedOpen, BadConnectSetting, BadAuditTopic, BadCredentials,
        BadClientProperty and the other errors of Kafka's settings.
    """
    if settings.flag(SHARED):
        _check_shared(settings)
    topic_acl.check_patterns(settings)
    offsets_of(settings.text(SKIP))
    check_listener(settings)
    check_exposure(settings)
    check_clients(settings.server)
    check_connect(settings)
    check_audit(settings)
    configured_url(settings, directory(settings))


def _check_shared(settings: Settings) -> None:
    if not settings.text("bootstrap.servers"):
        raise CannotShare(
            "bootstrap.servers is not", "The embedded broker would be this server's alone."
        )
    if is_embedded(settings):
        raise CannotShare(
            "the embedded Kafka Connect would be this server's alone",
            "Run Kafka Connect by itself, and name it in ksql.connect.url.",
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


MASTER: Final = "ksql.spark.master"
REQUIRED: Final = "ksql.spark.authenticate.required"
SECRET_FILE: Final = "ksql.spark.authenticate.secret.file"  # noqa: S105 - a property's name
REMOTE: Final = "ksql.embedded.allow.remote"
_AUTHENTICATE: Final = "spark.authenticate"
_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - a property's name


class SparkOpen(StartError):
    """A Spark cluster that runs the code of anyone who reaches it."""

    def __init__(self, master: str, lacks: str) -> None:
        super().__init__(
            f"{MASTER} is {master}, and {lacks}",
            detail="Beyond `local`, Spark's driver and executors listen on the network: without "
            f"{_AUTHENTICATE} they run the code of anyone who reaches them.",
            hint=f"Name a file with the secret that master and workers have as {_SECRET}: "
            f"{SECRET_FILE}=.. . Where nobody else reaches that network, set {REQUIRED}=false.",
        )


class BadSparkSecret(StartError):
    """A file that should hold Spark's secret, and does not."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{SECRET_FILE}: the file {path} {why}",
            hint="Write one line that nobody guesses: openssl rand -hex 32",
        )


class EmbeddedOpen(StartError):
    """A part without users or TLS in a server that other machines reach."""

    def __init__(self, what: str, listener: str) -> None:
        super().__init__(
            f"{what} knows neither users nor TLS, and {listener} is open to other machines",
            hint="Give the service a Kafka and a schema registry of their own (bootstrap.servers, "
            f"{REGISTRY}). Where only this machine's users and trusted ones reach it, set "
            f"{REMOTE}=true.",
        )


def check_exposure(settings: Settings) -> None:
    """Refuse a Spark cluster without authentication, and embedded parts that are open.

    Raises: SparkOpen, BadSparkSecret, EmbeddedOpen.
    """
    _check_spark(settings, authentication(settings))
    if settings.flag(REMOTE):
        return
    for part, name, listener in _beside(settings):
        if not is_loopback(urlsplit(listener).hostname or ""):
            raise EmbeddedOpen(part, f"{name} {listener}")


def authentication(settings: Settings) -> dict[str, str]:
    """Return what Spark's configuration gets from the file with its secret; nothing without one.

    Raises: BadSparkSecret.
    """
    path = settings.text(SECRET_FILE)
    if not path:
        return {}
    return {_AUTHENTICATE: "true", _SECRET: _read(path), "spark.network.crypto.enabled": "true"}


def _check_spark(settings: Settings, from_file: Mapping[str, str]) -> None:
    master = settings.text(MASTER)
    if is_local(master) or not settings.flag(REQUIRED):
        return
    conf = {**from_file, **settings.server}
    if conf.get(_AUTHENTICATE, "").lower() != "true":
        raise SparkOpen(master, f"{_AUTHENTICATE} is not true")
    if not conf.get(_SECRET):
        raise SparkOpen(master, f"there is no {_SECRET}")


def _read(path: str) -> str:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSparkSecret(path, "cannot be read") from error
    if not text or len(text.splitlines()) > 1:
        raise BadSparkSecret(path, "does not hold one line")
    return text


def _beside(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield the embedded parts with the listeners that must be this machine's for them.

    A server with a broker of its own holds all records on this machine. A registry of its own is
    reached by its own listener alone.
    """
    if not settings.text(REGISTRY):
        yield "the embedded schema registry", REGISTRY_LISTENER, settings.text(REGISTRY_LISTENER)
    embedded = {
        "the embedded Kafka broker": not settings.text("bootstrap.servers"),
        "the embedded Kafka Connect": is_embedded(settings),
    }
    for part in (part for part, is_there in embedded.items() if is_there):
        for name in ("listeners", INTERNAL):
            for listener in comma_list(settings.text(name)):
                yield part, name, listener
