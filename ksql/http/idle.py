"""Closes a connection on which nothing has come or gone for too long, and nobody is answered.

A head that has begun to come, and the first one of a connection, have seconds only.

Clients keep connections to ask again, and each costs a socket. A request that never comes whole
is such a connection too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl

from ksql.http.connections import connection_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

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
        self._timer = loop.call_later(seconds, self._look) if seconds else None
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

    def _look(self) -> None:
        transport = self._transport
        if not transport.is_closing() and self._is_answering():
            self.touch()
        rest = self._since + self._seconds - self._loop.time()
        if rest <= 0:
            rest = self._seconds
            self._end_it()
        self._timer = self._loop.call_later(rest, self._look)

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

    def resume_reading(self) -> None:
        """Let the client send, if there is room for it."""
        if self.read_paused and self._kept() <= HIGH_WATER_LIMIT:
            self._idle.touch()  # so long it could not send
            super().resume_reading()
