"""Begins the connections of a listening socket in small rounds, those of each address in turn.

The kernel gives them in the order in which they came: one address that opens thousands at once
would have all others wait. To take them from the kernel costs little; their beginnings cost more,
TLS handshakes most. Open connections are served between two rounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from asyncio import constants
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from ksql.http import connections

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ksql.http.connections import Connection, Listening

_TAKEN_AT_ONCE: Final = 200
_USED_UP: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Queue:
    """Connections that have not begun; the addresses take turns."""

    def __init__(self) -> None:
        self._by_client: OrderedDict[str, deque[Connection]] = OrderedDict()

    def add(self, connection: Connection) -> None:
        """Add one after those of its address."""
        self._by_client.setdefault(connection.client, deque()).append(connection)

    def next(self) -> Connection | None:
        """Take the one whose turn it is; None if there is none. Those that were closed are none."""
        while self._by_client:
            client, waiting = self._by_client.popitem(last=False)
            connection = waiting.popleft()
            if waiting:
                self._by_client[client] = waiting
            if connection.fileno() >= 0:
                return connection
        return None

    def __bool__(self) -> bool:
        return bool(self._by_client)


class Acceptor:
    """Accepts from its creation on until ``close``; uvicorn sees a server of asyncio's in it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: Listening,
        begin: Callable[[Connection], Coroutine[Any, Any, object]],
    ) -> None:
        self._loop, self._sock, self._begin = loop, sock, begin
        self._waiting = Queue()
        self._beginning: set[asyncio.Task[None]] = set()
        self._is_open, self._in_rounds = True, False
        sock.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more, and close what has not begun."""
        self._is_open = False
        self._loop.remove_reader(self._sock.fileno())
        while (connection := self._waiting.next()) is not None:
            connection.close()

    async def wait_closed(self) -> None:
        """Wait for nothing: uvicorn waits for the connections themselves."""

    def _listen(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._sock.fileno(), self._take)

    def _take(self) -> None:
        """Take what has come; without descriptors try again in a second."""
        try:
            for _ in range(_TAKEN_AT_ONCE):
                if (connection := self._sock.take()) is not None:
                    self._waiting.add(connection)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            pass
        except OSError as error:
            if error.errno not in _USED_UP:
                raise
            context = {"message": "socket.accept() out of system resource", "exception": error}
            self._loop.call_exception_handler(context)
            self._loop.remove_reader(self._sock.fileno())
            self._loop.call_later(constants.ACCEPT_RETRY_DELAY, self._listen)
        if not self._in_rounds:
            self._round()

    def _round(self) -> None:
        """Begin some, and the next ones after what else the loop has to do."""
        for _ in range(connections.in_a_round(self._sock)):
            if (connection := self._waiting.next()) is None:
                break
            connection.begins()
            task = self._loop.create_task(self._begun(connection))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)
        self._in_rounds = bool(self._waiting)
        if self._in_rounds:
            self._loop.call_soon(self._round)

    async def _begun(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):  # the client was faster, or fails in TLS
            await self._begin(connection)
