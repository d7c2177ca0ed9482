"""Guards every application before its first route, and puts CORS headers on answers.

A browser lends its user's place in the network to any page it shows. So a request that a page of
another origin sent is refused. So is one under a name that is not this server's: a name may be made
to point at any address. Clients that are no browsers see no difference. Source: the Fetch standard
on ``Origin``; W3C, Fetch Metadata; rest-utils on ``access.control.*``.

The guard comes before an application, with CORS headers for the pages of allowed origins.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import platform
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from ksql.core import AMBIGUOUS_BODY, COMPRESSED_BODY, KsqlError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ksql.core import Settings


ORIGINS: Final = "access.control.allow.origin"
METHODS: Final = "access.control.allow.methods"
HEADERS: Final = "access.control.allow.headers"
HOSTS: Final = "ksql.allowed.hosts"
ADVERTISED: Final = "ksql.advertised.listener"
INTERNAL: Final = "ksql.internal.listener"
MAX_BODY: Final = "ksql.server.request.max.bytes"
DEFAULT_MAX_BODY: Final = 10_485_760
EVERY: Final = "*"
ENDLESS: Final = "/inserts-stream"  # a body of lines, each with the bound of its own
_HANDSHAKE: Final = "websocket.http.response"  # an answer in place of a websocket
_CODINGS: Final = frozenset(
    (b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"compress", b"x-compress")
)
_LOOKED_AT: Final = frozenset((b"host", b"origin", b"sec-fetch-site"))
_PORTS: Final = {"http": 80, "https": 443}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class ForeignOrigin(KsqlError):
    """A request that a web page of another origin made."""

    code = 40300

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"a web page of another origin may not use this server: {origin}",
            detail="Any page could otherwise send statements from the browsers of this network.",
            hint=f"To allow it, name its origin in the server's configuration: {ORIGINS}=..",
        )


class ForeignHost(KsqlError):
    """A request under a name that this server does not have."""

    code = 42100

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this server is not '{host}'",
            detail="A foreign name that leads here can let a web page read what this server knows.",
            hint="Use an address of the server or localhost, or name the host in the server's "
            f"configuration: {HOSTS}=..",
        )


class BodyTooLong(KsqlError):
    """A request, or a line of one, that is longer than any that makes sense."""

    code = 41300

    def __init__(self, limit: int, what: str = "the request's body") -> None:
        super().__init__(
            f"{what} is longer than {limit} bytes",
            hint=f"Send it in parts, or raise {MAX_BODY} in the server's configuration.",
        )


@dataclass(frozen=True)
class Access:
    """Which names this server goes by, and which origins may use it; ``*`` stands for all.

    Addresses, ``localhost`` and the machine's own name are always the server's own.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    methods: tuple[str, ...] = ("GET", "POST", "HEAD")
    headers: tuple[str, ...] = ("X-Requested-With", "Content-Type", "Accept", "Origin")
    max_body_bytes: int = DEFAULT_MAX_BODY
    machine: str = field(default_factory=lambda: platform.node().lower())

    @classmethod
    def of(cls, settings: Settings, listeners: Iterable[str] = ()) -> Access:
        """Read the settings; ``listeners`` are the names that the server listens at.

        The name that it advertises is its own as well: other servers use it.
        """
        named = (name.partition(":")[0] for name in _lowered(settings, HOSTS))
        advertised = urlsplit(settings.text(ADVERTISED)).hostname or ""
        return cls(
            frozenset((*named, *(name.lower() for name in listeners), advertised)) - {""},
            frozenset(name.rstrip("/") for name in _lowered(settings, ORIGINS)),
            tuple(part.upper() for part in _lowered(settings, METHODS)),
            _lowered(settings, HEADERS),
            settings.number(MAX_BODY),
        )

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> KsqlError | None:
        """Return why a request with these headers is not answered; None if it is."""
        by_name: dict[bytes, list[str]] = {}
        for name, value in headers:
            if (lowered := name.lower()) in _LOOKED_AT:
                by_name.setdefault(lowered, []).append(value.decode("latin-1"))
        hosts = by_name.get(b"host", [])
        for host in hosts if len(hosts) == 1 else hosts and [", ".join(hosts)]:
            if not self._is_own(host):
                return ForeignHost(host)
        for origin in by_name.get(b"origin", []):
            if not self._may_use(origin, hosts):
                return ForeignOrigin(origin)
        cross = "cross-site" in (
            site.strip().lower() for site in by_name.get(b"sec-fetch-site", [])
        )
        if cross and b"origin" not in by_name and EVERY not in self.origins:
            return ForeignOrigin("the browser says cross-site")
        return None

    def _is_own(self, authority: str) -> bool:
        if EVERY in self.hosts:
            return True
        name = (_parts("http://" + authority) or ("", 0))[0]
        if not name:
            return False
        return (
            name in self.hosts
            or name in ("localhost", self.machine)
            or name.endswith(".localhost")
            or _is_address(name)
        )

    def _may_use(self, origin: str, hosts: list[str]) -> bool:
        if EVERY in self.origins or origin.lower() in self.origins:
            return True
        theirs = _parts(origin)
        if theirs is None:  # "null": a page that hides where it comes from
            return False
        scheme = urlsplit(origin).scheme
        return any(_parts(f"{scheme}://{host}") == theirs for host in hosts)


class Guard:
    """An ASGI application that answers only permitted requests."""

    def __init__(self, app: Application, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it before its body is read."""
        refused = None
        if scope["type"] in ("http", "websocket"):
            refused = self._access.refusal(scope["headers"]) or self._unreadable(scope)
        if refused is None:
            bounded = scope["type"] == "http" and scope["path"] != ENDLESS
            with contextlib.suppress(ClientDisconnect):  # there is nobody to be answered
                await self._app(scope, self._bounded(receive) if bounded else receive, send)
        elif scope["type"] == "http":
            await _tell(refused, send, "http.response")
        elif _HANDSHAKE in scope.get("extensions", {}):
            await _tell(refused, send, _HANDSHAKE)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": refused.message})

    def _unreadable(self, scope: Message) -> KsqlError | None:
        """Return why a body is not read, as far as its headers say."""
        if scope["type"] != "http":
            return None
        by_name = {name.lower(): value for name, value in scope["headers"]}
        if b"transfer-encoding" in by_name and b"content-length" in by_name:
            return AMBIGUOUS_BODY()
        coding = by_name.get(b"content-encoding", b"").strip()
        if any(part.strip() in _CODINGS for part in coding.lower().split(b",")):
            return COMPRESSED_BODY(coding=coding.decode("latin-1"))
        limit, length = self._access.max_body_bytes, by_name.get(b"content-length", b"0")
        if scope["path"] == ENDLESS or not length.isdigit() or int(length) <= limit:
            return None
        return BodyTooLong(limit)

    def _bounded(self, receive: Receive) -> Receive:
        """Return the same, for a body that did not say how long it would be."""
        limit = self._access.max_body_bytes
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise BodyTooLong(limit)
            return message

        return bounded


async def _tell(refused: KsqlError, send: Send, of: str) -> None:
    body = {
        "@type": "generic_error",
        "error_code": refused.code,
        "message": refused.text(),
    }
    data = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
        (b"connection", b"close"),  # the body, however long, is not waited for
    ]
    status = refused.code // 100
    await send({"type": f"{of}.start", "status": status, "headers": headers})
    await send({"type": f"{of}.body", "body": data})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens at that name or address."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ipaddress.ip_address(name).is_loopback


def _lowered(settings: Settings, name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in settings.parts(name))


@lru_cache(maxsize=256)
def _parts(url: str) -> tuple[str, int] | None:
    """Host and port of a URL; None if it has none."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return None
    if not split.hostname or split.username is not None or split.scheme not in _PORTS:
        return None
    if split.path not in ("", "/") or split.query or split.fragment:
        return None
    return split.hostname.rstrip("."), _PORTS[split.scheme] if port is None else port


@lru_cache(maxsize=256)
def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def guard(app: FastAPI, access: Access) -> None:
    """Answer only permitted requests; call this after all other middleware has been added."""
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(access.origins),
            allow_methods=access.methods,
            allow_headers=access.headers,
        )
    app.add_middleware(Guard, access=access)
