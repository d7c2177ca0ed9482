"""HTTP/1.1 or HTTP/2 on the same port: the client's first bytes decide, or TLS has (ALPN).

In clear text a client that knows beforehand opens with HTTP/2's preface; no request of HTTP/1.1
begins so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.utils import is_ssl

from ksql.http.connections import connection_of
from ksql.http.fast_http1 import Ordinary
from ksql.http.http2 import PREFACE, Http2
from ksql.http.read_sizes import keep_little, read_little
from ksql.http.timeouts import Idle, head_of, idle_of

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState


class EitherHttp(asyncio.Protocol):
    """A new connection, until it is known which version it speaks."""

    alpn_protocols: ClassVar[list[str]] = ["h2", "http/1.1"]  # uvicorn offers them in TLS

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._first = b""
        self._transport: asyncio.Transport
        self._idle: Idle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Decide at once behind TLS."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - uvicorn makes no other
        self._transport = transport
        if is_ssl(transport):
            keep_little(transport)
            connection = connection_of(transport)
            if connection is not None and connection.table is not None:
                connection.table.handshake_ends(connection)
            chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
            self._become(http2=chosen == "h2")
        else:
            read_little(transport)
            self._state.connections.add(self)  # type: ignore[arg-type]  # by its shape
            seconds = idle_of(self._config)
            self._idle = Idle(self._loop, seconds, transport, lambda: False, transport.close)
            self._idle.expect_head(head_of(self._config))

    def data_received(self, data: bytes) -> None:
        """Decide as soon as the first bytes suffice."""
        if self._transport.is_closing():
            return
        self._first += data
        if len(self._first) < len(PREFACE) and PREFACE.startswith(self._first):
            return
        self._state.connections.discard(self)
        self._become(http2=self._first.startswith(PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection: the client has left without a word."""
        del exc
        self._state.connections.discard(self)
        self._unwatch()

    def shutdown(self) -> None:
        """Close: nothing was asked."""
        self._transport.close()

    def _unwatch(self) -> None:
        if self._idle is not None:
            self._idle.end()

    def _become(self, *, http2: bool) -> None:
        self._unwatch()
        chosen: asyncio.Protocol
        if http2:
            chosen = Http2(self._config, self._state, self._loop)
        else:
            chosen = Ordinary(self._config, self._state, self._app_state, self._loop)
        self._transport.set_protocol(chosen)
        chosen.connection_made(self._transport)
        if self._first:
            chosen.data_received(self._first)
