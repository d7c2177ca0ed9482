"""The sockets that the server listens on, bound before anything else is started.

Those of ``metrics.listeners`` answer scrapes and probes only, without a password.

Source: ksqlDB server configuration reference, ``listeners``.
"""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ksql.core import PROPERTIES, Settings, StartError, comma_list, raise_limit
from ksql.http import (
    INTERNAL,
    Connections,
    HttpServer,
    Listening,
    Renewable,
    is_loopback,
    listen,
    server_context,
    url,
)

log = logging.getLogger(__name__)

DEFAULT = "http://127.0.0.1:8088"
DEFAULT_PORT = 8088
REGISTRY = "schema registry"
METRICS = "metrics"
METRICS_LISTENERS = "metrics.listeners"
_REGISTRY_LISTENER = "ksql.schema.registry.listener"
_EXAMPLES = {"listeners": DEFAULT, METRICS_LISTENERS: "http://0.0.0.0:9404"}
_SCRAPES = 64  # connections to the listeners of metrics: scrapes and probes


class BadListener(StartError):
    """A listener that is not an address this server can bind."""

    def __init__(self, listener: str, why: str, name: str = "listeners") -> None:
        super().__init__(
            f"the listener '{listener}' of {name} {why}", hint=f"Example: {name}={_EXAMPLES[name]}"
        )


class PortInUse(StartError):
    """Another process has the port already."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, host: str, port: int, name: str = "listeners") -> None:
        super().__init__(
            f"port {port} on {host} is in use",
            detail="Another server may be running.",
            hint=f"Stop it, or choose another port: -o {name}=http://{host}:{port + 1}",
        )


@dataclass(frozen=True, slots=True)
class Listener:
    """A host and a port, with or without TLS; port 0 lets the system choose."""

    host: str
    port: int
    tls: bool = False

    @property
    def scheme(self) -> str:
        """How a URL of it begins."""
        return "https" if self.tls else "http"


def parse_listeners(text: str, name: str = "listeners") -> tuple[Listener, ...]:
    """Return the addresses of the property of that name.

    Raises: BadListener.
    """
    return tuple(_parse(part, name) for part in comma_list(text))


def _parse(text: str, name: str) -> Listener:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise BadListener(text, "has no valid host", name) from error
    if parts.scheme not in ("http", "https"):
        raise BadListener(text, "is not a URL that starts with http:// or https://", name)
    try:
        port = parts.port
    except ValueError as error:
        raise BadListener(text, "has no valid port", name) from error
    if port is None and name == METRICS_LISTENERS:
        raise BadListener(text, "has no port", name)
    return Listener(
        parts.hostname or "", DEFAULT_PORT if port is None else port, tls=parts.scheme == "https"
    )


def bind(listeners: Sequence[Listener], name: str = "listeners") -> list[Listening]:
    """Return sockets that listen already: nobody can take the port while the service starts.

    Raises: PortInUse, BadListener.
    """
    bound: list[Listening] = []
    try:
        for listener in listeners:
            bound.append(_bind(listener, name))  # noqa: PERF401 - those bound so far must be closable
    except StartError:
        for sock in bound:
            sock.close()
        raise
    return bound


def _bind(listener: Listener, name: str) -> Listening:
    try:
        return listen(listener.host, listener.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(listener.host, listener.port, name) from error
        text = f"{listener.scheme}://{listener.host}:{listener.port}"
        why = error.strerror or str(error)
        raise BadListener(text, f"cannot be bound: {why}", name) from error


def url_of(sock: socket.socket, scheme: str = "http") -> str:
    """Return how a client on this machine reaches the socket."""
    host, port = sock.getsockname()[:2]
    return url(host, port, scheme)


@dataclass(frozen=True)
class Listeners:
    """The listeners of one server and their sockets; ``tls`` is None if no listener asks for it."""

    listeners: tuple[Listener, ...]
    sockets: list[Listening]
    tls: Renewable | None
    most: int | None = None
    """How many connections they have at a time, if fewer than the settings permit."""

    @property
    def hosts(self) -> list[str]:
        """The names and addresses at which they listen."""
        return [listener.host for listener in self.listeners]

    @property
    def ask_certificates(self) -> bool:
        """Whether each of them speaks only to clients with a certificate."""
        required = self.tls is not None and self.tls.verify_mode == ssl.CERT_REQUIRED
        return required and all(listener.tls for listener in self.listeners)

    @property
    def urls(self) -> list[str]:
        """How clients on this machine reach them."""
        pairs = zip(self.sockets, self.listeners, strict=True)
        return [url_of(sock, listener.scheme) for sock, listener in pairs]

    def servers(self, app: Any, grace_s: int, settings: Settings) -> list[HttpServer]:
        """Return an application's servers: one for the sockets in clear text, one for TLS.

        Together they have no more connections than half of the process's descriptors.
        """
        pairs = list(zip(self.sockets, self.listeners, strict=True))
        clear = [sock for sock, listener in pairs if not listener.tls]
        hidden = [sock for sock, listener in pairs if listener.tls]
        groups = ((clear, None), (hidden, self.tls))
        patience_s = settings.number("ksql.server.unread.timeout.ms") / 1000
        idle_s = settings.number("ksql.idle.connection.timeout.seconds")
        head_s = settings.number("ksql.server.head.timeout.ms") / 1000
        connections = _connections(settings, raise_limit(), self.most)
        return [
            HttpServer(app, sockets, grace_s, tls, patience_s, idle_s, head_s, connections)
            for sockets, tls in groups
            if sockets
        ]

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def _connections(settings: Settings, descriptors: int, few: int | None) -> Connections:
    if few is not None:
        return Connections(few, few)
    configured = settings.number("ksql.server.connections.max")
    most = min(configured, descriptors // 2)
    if most < configured:
        log.warning("connections_limited", extra={"asked": configured, "most": most})
    of_one = settings.number("ksql.server.connections.per.address.max")
    return Connections(most, min(of_one, most))


def open_doors(configuration: Mapping[str, str]) -> Listeners:
    """Bind the configured listeners, the one for the other servers among them.

    Raises: PortInUse, BadListener, and what ``server_context`` raises.
    """
    settings = Settings(configuration)
    named = (*settings.parts("listeners"), *comma_list(settings.text(INTERNAL)))
    return _open(parse_listeners(",".join(dict.fromkeys(named))), configuration)


def open_metrics(configuration: Mapping[str, str], doors: Listeners) -> Listeners:
    """Bind the listeners of /metrics and the probes; ``doors`` are those of everything.

    Raises: PortInUse, BadListener, and what ``server_context`` raises.
    """
    name = METRICS_LISTENERS
    listeners = parse_listeners(",".join(dict.fromkeys(Settings(configuration).parts(name))), name)
    for listener in listeners:
        if listener.port and _same_place(listener, doors.listeners):
            text = url(listener.host, listener.port, listener.scheme)
            raise BadListener(text, "has the address of another listener of this server", name)
    return _open(listeners, configuration, name, _SCRAPES)


def _same_place(listener: Listener, others: Iterable[Listener]) -> bool:
    return any((listener.host, listener.port) == (other.host, other.port) for other in others)


def _open(
    listeners: tuple[Listener, ...],
    configuration: Mapping[str, str],
    name: str = "listeners",
    most: int | None = None,
) -> Listeners:
    tls = None
    if any(listener.tls for listener in listeners):
        tls = Renewable(lambda: server_context(configuration))
    return Listeners(listeners, bind(listeners, name), tls, most)


def registry_host(configuration: Mapping[str, str]) -> str:
    """Return the name or address at which the embedded registry listens."""
    default = PROPERTIES[_REGISTRY_LISTENER].default
    return urlsplit(configuration.get(_REGISTRY_LISTENER, default)).hostname or ""


def openness(
    doors: Collection[str], reach: Mapping[str, Sequence[str]], known: Collection[str] = ()
) -> Iterator[str]:
    """Describe which ports are open to this machine and which to other machines.

    ``reach`` has the hosts at which a door listens; a door without an entry listens at loopback.
    ``known`` are the doors that ask clients who they are.
    """
    wide = sorted(name for name in doors if not all(map(is_loopback, reach.get(name, ()))))
    here = sorted(name for name in doors if name not in wide)
    for where, shut, opened in (
        ("open to this machine only", here, "open to this machine only"),
        ("open to other machines", wide, "OPEN TO OTHER MACHINES"),
    ):
        if free := [name for name in shut if name not in known]:
            yield f"{opened}, without authentication: {', '.join(free)}"
        if limited := [name for name in shut if name in known]:
            yield f"{where}, to known clients: {', '.join(limited)}"
