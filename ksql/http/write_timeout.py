"""Hangs up on a client that takes nothing of what it is sent.

What waits for such a client is bounded: the application waits too. But its query, its place among
the queries and its memory would be kept for as long as the connection lives.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_log: Final = logging.getLogger(__name__)
UNREAD_S: Final = 60.0
_AT_ONCE: Final = struct.pack("ii", 1, 0)


class Unread:
    """The patience with one connection: it ends when nothing has been taken for that long."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        transport: asyncio.Transport,
        on_end: Callable[[], None],
    ) -> None:
        """Take ``on_end``, which is called before the connection is cut."""
        self._loop = loop
        self._seconds = seconds
        self._transport = transport
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0

    def begin(self) -> None:
        """Start the clock: more is waiting to be sent than may wait."""
        self.end()
        self._left = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._seconds, self._look)

    def end(self) -> None:
        """Stop the clock: the client has taken enough, or has left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.begin()
            return
        self._timer = None
        self._on_end()
        sock = self._transport.get_extra_info("socket")
        if sock is not None:  # a reset, and nothing left in the kernel
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()  # to close would wait for the client


def note(scope: Mapping[str, Any], seconds: float) -> None:
    """Log that a request's client is hung up on; ``query_id`` of its state says which query ends.

    The name of the path is enough: its parameters may hold a password.
    """
    query_id = scope.get("state", {}).get("query_id")
    _log.warning(
        "client_takes_nothing",
        extra={
            "client": scope.get("client"),
            "path": scope.get("path"),
            "query_id": query_id,
            "seconds": seconds,
        },
    )


class Patient(asyncio.Protocol):
    """Makes a protocol of uvicorn's hang up on such clients, from ``watch_unread`` on."""

    scope: Any

    def watch_unread(
        self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport
    ) -> None:
        """Begin, with the connection."""
        self._unread = Unread(loop, seconds, transport, lambda: note(self.scope, seconds))

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Continue."""
        super().resume_writing()
        self._unread.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock: the client has left."""
        self._unread.end()
        super().connection_lost(exc)
