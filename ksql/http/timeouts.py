"""Closes connections that are idle for too long, and those whose client takes no answer.

A head that has begun to come, and the first one of a connection, have seconds only. uvicorn's
configuration holds these times.

Clients keep connections to ask again, and each costs a socket. A request that never comes whole
is such a connection too.

A client that takes nothing of what it is sent is hung up on.

What waits for such a client is bounded: the application waits too. But its query, its place among
the queries and its memory would be kept for as long as the connection lives.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl

from ksql.http.connections import HEAD_S, connection_of

IDLE_S: Final = 86_400.0  # ksqlDB's


class Idle:
    """The clock of one connection, from its beginning to its end; zero seconds never close it.

    The timer is not moved by traffic, which only notes the time: it looks, and rings again for the
    rest.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        transport: asyncio.Transport,
        is_answering: Callable[[], bool],
        close: Callable[[], None],
    ) -> None:
        """Take ``is_answering``: whether the client waits for this end, not this end for it."""
        self._loop = loop
        self._seconds = seconds
        self._transport = transport
        self._is_answering = is_answering
        self._close = close
        self._left = 0
        self._since = loop.time()
        self._timer = loop.call_later(seconds, self._check) if seconds else None
        self._head_timer: asyncio.TimerHandle | None = None
        self._connection = connection_of(transport)
        if self._connection is not None:
            self._connection.is_busy = is_answering

    def touch(self) -> None:
        """Take note that something has come or gone."""
        self._since = self._loop.time()
        connection = self._connection
        if connection is not None and connection.table is not None:
            connection.table.touch(connection)

    def expect_head(self, seconds: float) -> None:
        """Close the connection unless a whole head comes in time; zero seconds set no end."""
        if seconds and self._head_timer is None:
            self._head_timer = self._loop.call_later(seconds, self._end_it)

    def head_came(self) -> None:
        """Wait for the next one as for any traffic."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def end(self) -> None:
        """Stop looking: the connection has ended, or is another protocol's."""
        self.head_came()
        if self._connection is not None:
            self._connection.is_busy = _always
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        transport = self._transport
        if not transport.is_closing() and self._is_answering():
            self.touch()
        rest = self._since + self._seconds - self._loop.time()
        if rest <= 0:
            rest = self._seconds
            self._end_it()
        self._timer = self._loop.call_later(rest, self._check)

    def _end_it(self) -> None:
        """Close; a client that takes nothing of what is left to send is not waited for."""
        left = self._transport.get_write_buffer_size()
        if left and left == self._left:
            self._transport.abort()
        elif not left and not self._transport.is_closing():
            self._close()
        self._left = left


def _always() -> bool:
    return True


class Flow(FlowControl):
    """Pauses of reading and writing; no reading on while much of what comes next is kept already.

    A client may send requests without end and read no answers. An application that asks whether the
    client is still there lets one more piece in each time.
    """

    def __init__(self, transport: asyncio.Transport, idle: Idle, kept: Callable[[], int]) -> None:
        """Take ``kept``: how many bytes after the running request there are."""
        super().__init__(transport)
        self._idle = idle
        self._kept = kept
        self._resting = self._resumes = False

    def rest(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Read no more for some time, whatever else happens."""
        if self._resting:
            return
        self._resumes = not self.read_paused
        super().pause_reading()
        self._resting = True
        loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._resting = False
        if self._resumes:
            self.resume_reading()

    def pause_reading(self) -> None:
        """Take no more until there is room for it."""
        self._resumes = False
        super().pause_reading()

    def resume_reading(self) -> None:
        """Let the client send, if there is room for it."""
        if self._resting:
            self._resumes = True
        elif self.read_paused and self._kept() <= HIGH_WATER_LIMIT:
            self._idle.touch()  # so long it could not send
            super().resume_reading()


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
        self._timer = self._loop.call_later(self._seconds, self._check)

    def taken(self) -> None:
        """Stop the clock, unless the connection closes: then all that is left must be taken."""
        if self._transport.is_closing():
            self.begin()
        else:
            self.end()

    def end(self) -> None:
        """Stop the clock: the client has left, or does not owe anything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
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
        self._unread.taken()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock: the client has left."""
        self._unread.end()
        super().connection_lost(exc)


class WebConfig(uvicorn.Config):
    """``patience_s``: how long a client may leave its answer unread; ``idle_s``: see ``Idle``.

    ``head_s``: how long a head, and a connection's first one, may take to come.
    """

    def __init__(
        self,
        app: Any,
        *,
        patience_s: float,
        idle_s: float = IDLE_S,
        head_s: float = HEAD_S,
        **others: Any,
    ) -> None:
        super().__init__(app, **others)
        self.patience_s = patience_s
        self.idle_s = idle_s
        self.head_s = head_s


def write_timeout_of(config: uvicorn.Config) -> float:
    """Return how long the connections of a server wait for their clients."""
    return config.patience_s if isinstance(config, WebConfig) else UNREAD_S


def idle_of(config: uvicorn.Config) -> float:
    """Return how long the connections of a server may be idle."""
    return config.idle_s if isinstance(config, WebConfig) else IDLE_S


def head_of(config: uvicorn.Config) -> float:
    """Return how long a head may take to come."""
    return config.head_s if isinstance(config, WebConfig) else HEAD_S
