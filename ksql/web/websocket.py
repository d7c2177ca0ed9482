"""uvicorn's websockets, with patience for clients and silence about what they sent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ksql.web import unread
from ksql.web.config import patience_of

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import HTTPScope

LONGEST_TARGET: Final = 8_000  # the package reads lines of 8,192 bytes, and 128 headers
_MOST_HEADERS: Final = 100
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


class WebSocket(WebSocketsSansIOProtocol):
    """One websocket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with our logger and patience."""
        super().connection_made(transport)
        self.logger = _log
        self.conn.logger = _log
        self._patience_s = patience_of(self.config)
        self._unread = unread.Unread(self.loop, self._patience_s, self.transport, self._hang_up)

    def data_received(self, data: bytes) -> None:
        """Read on, unless it is closed; over TLS there may be more to come even then."""
        if not self.transport.is_closing():
            super().data_received(data)

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Continue."""
        super().resume_writing()
        self._unread.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._unread.end()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        unread.note(self.scope, self._patience_s)
