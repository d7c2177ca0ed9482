"""uvicorn's websockets, with patience for clients and silence about what they sent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ksql.http.timeouts import Patient, write_timeout_of
from ksql.http.tls import certified

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import HTTPScope

LONGEST_TARGET: Final = 8_000  # the package reads lines of 8,192 bytes, and 128 headers
_MOST_HEADERS: Final = 100
_ABNORMAL: Final = 1006  # an end without a farewell
_log: Final = logging.getLogger(__name__)
_log.setLevel(logging.WARNING)  # below it whole URLs are logged, which may hold a password
_log.addFilter(lambda record: record.msg != "Invalid UTF-8 sequence received from client.")


def fits(scope: HTTPScope) -> bool:
    """Return whether the websockets can read a request; they leave others without an answer."""
    headers = list(scope["headers"])
    target = len(scope["raw_path"]) + len(scope["query_string"])
    longest = max([target, *(len(name) + len(value) for name, value in headers)])
    body = any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
    return longest < LONGEST_TARGET and len(headers) <= _MOST_HEADERS and not body


class WebSocket(Patient, WebSocketsSansIOProtocol):
    """One websocket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with our logger and patience."""
        super().connection_made(transport)
        self.app = certified(self.app, transport)
        self.logger = _log
        self.conn.logger = _log
        self.watch_unread(self.loop, write_timeout_of(self.config), self.transport)

    def schedule_ping(self) -> None:
        """Ping again after the interval, however late the answers to earlier pings came."""
        if self.ping_interval:
            self.ping_timer = self.loop.call_later(self.ping_interval, self.send_keepalive_ping)

    def eof_received(self) -> None:
        """Let the application see that a client which ends its side has left."""
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": _ABNORMAL})
        self._unread.begin()

    def data_received(self, data: bytes) -> None:
        """Read on, unless it is closed; over TLS there may be more to come even then."""
        if not self.transport.is_closing():
            super().data_received(data)
