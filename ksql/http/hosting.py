"""Runs an application in uvicorn over open sockets; accepts targets that are whole URLs.

Proxies and some clients send a whole URL as the target of a request.

Source: RFC 9112, section 3.2.2: a server accepts them, and the URL's host counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import uvicorn

from ksql.core.process import in_background
from ksql.http.acceptor import Acceptor
from ksql.http.connections import HEAD_S, Connections, quiet_about_descriptors
from ksql.http.protocol_detect import EitherHttp
from ksql.http.read_sizes import read_little_over_tls
from ksql.http.timeouts import IDLE_S, UNREAD_S, WebConfig, head_of
from ksql.http.websocket import WebSocket

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterator, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ksql.http.connections import Listening


_LONGEST_MESSAGE = 65_536  # a websocket's client has nothing to say but farewell
_PING_S = 20.0
"""A client that reads slowly comes late to a ping: its answer is not waited for."""


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process decides what a signal means."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = threading.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and let waiting threads know."""
        loop = asyncio.get_running_loop()
        quiet_about_descriptors(loop)
        if self.config.ssl is not None:
            read_little_over_tls()
        servers = [self._accepting(loop, cast("Listening", sock)) for sock in sockets or ()]
        self.servers = cast("list[asyncio.Server]", servers)
        self.started = True
        self.accepting.set()

    def _accepting(self, loop: asyncio.AbstractEventLoop, sock: Listening) -> Acceptor:
        tls, handshake_s = self.config.ssl, self._handshake_s
        return Acceptor(
            loop,
            sock,
            lambda connection: loop.connect_accepted_socket(
                self._protocol, connection, ssl=tls, ssl_handshake_timeout=handshake_s
            ),
        )

    @property
    def _handshake_s(self) -> float | None:
        """How long TLS may take to begin; asyncio sets it for TLS only."""
        return None if self.config.ssl is None else head_of(self.config) or None

    def _protocol(self) -> asyncio.Protocol:
        return EitherHttp(self.config, self.server_state, self.lifespan.state)


class HttpServer:
    """One application on sockets of ``listen``, in a running event loop or a thread of its own.

    ``grace_s`` is how long running answers may take to end at a stop. ``patience_s`` is how long a
    client may leave its answer unread. ``idle_s`` is how long a connection may be idle, zero for
    ever. ``head_s`` is how long a head or the TLS handshake may take. With ``tls`` all sockets
    speak it. ``connections`` has those of all servers that share their limits.
    """

    def __init__(
        self,
        app: Any,
        sockets: Sequence[Listening],
        grace_s: int,
        tls: ssl.SSLContext | None = None,
        patience_s: float = UNREAD_S,
        idle_s: float = IDLE_S,
        head_s: float = HEAD_S,
        connections: Connections | None = None,
    ) -> None:
        self._sockets = list(sockets)
        table = Connections() if connections is None else connections
        for sock in self._sockets:
            sock.table, sock.is_tls = table, tls is not None
        self._server = _Server(
            WebConfig(
                WholeTargets(app),
                patience_s=patience_s,
                idle_s=idle_s,
                head_s=head_s,
                http=EitherHttp,
                ws=WebSocket,
                ws_max_size=_LONGEST_MESSAGE,
                ws_ping_interval=_PING_S,
                ws_ping_timeout=None,
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=grace_s,
                ssl_context_factory=None if tls is None else lambda *_: tls,
            )
        )
        self._thread: ServerThread | None = None

    async def serve(self) -> None:
        """Answer until ``end``, then until the running answers have ended."""
        await self._server.serve([*self._sockets])

    def end(self) -> None:
        """Accept no more requests; safe to call from any thread."""
        self._server.should_exit = True

    def start(self, name: str) -> None:
        """Answer in a thread of that name; returns once connections are accepted."""
        self._thread = ServerThread([self])
        self._thread.start(name)

    def stop(self) -> None:
        """End the thread, the running answers first; harmless when there is none."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def await_accepting(self) -> None:
        """Return once connections are accepted, or never will be."""
        self._server.accepting.wait()

    def give_up(self) -> None:
        """End the wait for connections: the server could not start."""
        self._server.accepting.set()


class ServerThread:
    """Some servers in one event loop, which has a thread of its own."""

    def __init__(self, servers: Sequence[HttpServer]) -> None:
        self._servers = servers
        self._thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Answer in a thread of that name; returns once connections are accepted."""
        if self._servers:
            self._thread = in_background(name, self._run)
        for server in self._servers:
            server.await_accepting()

    def stop(self) -> None:
        """End the thread, the running answers first; harmless when there is none."""
        for server in self._servers:
            server.end()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            for server in self._servers:
                server.give_up()

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve() for server in self._servers))


_SCHEMES = (b"http://", b"https://")


class WholeTargets:
    """An application that sees the path of such a target, and its host as the header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = scope.get("raw_path", b"")
        if scope["type"] == "http" and target.lower().startswith(_SCHEMES):
            scope = {**scope, **_parts(target, scope["headers"])}
        await self._app(scope, receive, send)


def _parts(target: bytes, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    authority, slash, rest = target.partition(b"://")[2].partition(b"/")
    path = slash + rest or b"/"
    others = [(name, value) for name, value in headers if name != b"host"]
    return {
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "headers": [(b"host", authority), *others],
    }
