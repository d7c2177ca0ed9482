"""Listening sockets with their URLs, and the bound on open connections.

At the limit, the connection that has been idle longest makes room for a new one. It is one of the
same address, if that has its share already, else one of the address that has most. One whose client
waits for an answer is never closed so; where there are only such, a new one is refused.

A loop begins few new connections in one round, so those that are open are served between them.
Of TLS handshakes, which cost most, only so many are under way that their work is bounded, too.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import logging
import socket
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from ksql.core import LogThrottle

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable


_log = logging.getLogger(__name__)
MOST: Final = 10_000
MOST_OF_ONE: Final = 5_000
HEAD_S: Final = 10.0
_MOST_CLOSING: Final = 500  # they are gone after the loop's next round
_AT_ONCE: Final = 20
_HANDSHAKES_AT_ONCE: Final = 4  # each costs a signature, a millisecond or two
MOST_HANDSHAKES: Final = 256
_NETWORK_BITS: Final = 64  # of an IPv6 address: one client has as many addresses as it likes


class Connection(socket.socket):
    """A client's socket; ``is_busy``: whether the client waits for this end."""

    table: Connections | None = None
    client = ""
    is_tls = False
    closing = False
    has_begun = False
    is_busy: Callable[[], bool]

    @classmethod
    def of(
        cls, accepted: socket.socket, table: Connections, client: str, *, is_tls: bool = False
    ) -> Connection:
        """Return the socket, which knows the table that it is to be in."""
        connection = cls(accepted.family, accepted.type, accepted.proto, accepted.detach())
        connection.table, connection.client, connection.is_busy = table, client, _never
        connection.is_tls = is_tls
        return connection

    def begins(self) -> None:
        """Take note that it gets a protocol, perhaps after a handshake."""
        self.has_begun = True
        if self.is_tls and self.table is not None:
            self.table.handshake_begins(self)

    def close(self) -> None:
        """Close, and make room."""
        table, self.table = self.table, None
        if table is not None:
            table.forget(self)
        super().close()

    def make_room(self) -> None:
        """Let its protocol see the end of the client's bytes: it closes then."""
        self.closing = True
        if not self.has_begun:
            self.close()
            return
        with contextlib.suppress(OSError):  # the client was faster
            self.shutdown(socket.SHUT_RDWR)


class Listening(socket.socket):
    """A socket that listens, and takes what has room in its ``table``.

    ``is_tls``: whether its connections begin with a handshake.
    """

    table: Connections | None = None
    is_tls = False

    def take(self) -> Connection | None:
        """Return the next connection; None if it has no room, and was closed.

        Raises: BlockingIOError when there is none; OSError without descriptors.
        """
        assert self.table is not None  # noqa: S101 - HttpServer gives it one
        accepted, address = self.accept()
        connection = Connection.of(accepted, self.table, client_of(address), is_tls=self.is_tls)
        if self.table.admit(connection):
            return connection
        connection.close()
        return None


def in_a_round(sock: Listening) -> int:
    """Return how many connections of a socket may begin in a round of the event loop."""
    return _HANDSHAKES_AT_ONCE if sock.is_tls else _AT_ONCE


class Connections:
    """The open connections by address, those without traffic for longest first."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._by_client: dict[str, OrderedDict[int, Connection]] = {}
        self._handshakes: OrderedDict[int, Connection] = OrderedDict()
        self._count = self._closing = 0
        self._crowded = LogThrottle()

    def __len__(self) -> int:
        return self._count

    def admit(self, connection: Connection) -> bool:
        """Take a new one if there is room, or some can be made."""
        mine = self._by_client.get(connection.client, OrderedDict())
        full: Iterable[OrderedDict[int, Connection]] = ()
        if len(mine) >= self._most_of_one:
            full = (mine,)
        elif self._count >= self._most:
            full = sorted(self._by_client.values(), key=len, reverse=True)
        if full and not self._make_room(full, connection.client):
            return False
        self._by_client.setdefault(connection.client, mine)[id(connection)] = connection
        self._count += 1
        return True

    def touch(self, connection: Connection) -> None:
        """Take note that something has come or gone."""
        mine = self._by_client.get(connection.client)
        if mine is not None and id(connection) in mine:
            mine.move_to_end(id(connection))

    def handshake_begins(self, connection: Connection) -> None:
        """Take note that one has to do its handshake; beyond the bound the oldest gives up."""
        self._handshakes[id(connection)] = connection
        if len(self._handshakes) > MOST_HANDSHAKES:
            self._close_one(self._handshakes.popitem(last=False)[1])

    def handshake_ends(self, connection: Connection) -> None:
        """Take note that one has done it."""
        self._handshakes.pop(id(connection), None)

    def forget(self, connection: Connection) -> None:
        """Take note that one is closed."""
        self.handshake_ends(connection)
        mine = self._by_client.get(connection.client)
        if mine is None or mine.pop(id(connection), None) is None:
            return
        self._count -= 1
        self._closing -= connection.closing
        if not mine:
            del self._by_client[connection.client]

    def _make_room(self, full: Iterable[OrderedDict[int, Connection]], newcomer: str) -> bool:
        idle = None
        if self._closing < _MOST_CLOSING:
            connections = itertools.chain.from_iterable(mine.values() for mine in full)
            idle = next((one for one in connections if not one.closing and not one.is_busy()), None)
        if times := self._crowded.due():
            extra = {"open": self._count, "address": newcomer, "times": times}
            _log.warning("connections_crowded", extra=extra)
        if idle is None:
            return False
        self._close_one(idle)
        return True

    def _close_one(self, connection: Connection) -> None:
        if not connection.closing:
            self._closing += 1
            connection.make_room()


def client_of(address: Any) -> str:
    """Return the address by which a client is counted; of IPv6 the network."""
    host = str(address[0]).partition("%")[0] if isinstance(address, tuple) and address else ""
    with contextlib.suppress(ValueError):
        ip = ipaddress.ip_address(host)
        if isinstance(ip, ipaddress.IPv6Address):
            if ip.ipv4_mapped is not None:
                return str(ip.ipv4_mapped)
            return str(ipaddress.ip_network((int(ip), _NETWORK_BITS), strict=False))
    return host


def connection_of(transport: asyncio.BaseTransport) -> Connection | None:
    """Return the connection below a transport; None if nobody counts it."""
    shown = transport.get_extra_info("socket")
    sock = getattr(shown, "_sock", None)  # asyncio shows a socket's shadow
    return sock if isinstance(sock, Connection) else None


def quiet_about_descriptors(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop say once in a while that it cannot accept, instead of each time with a trace.

    It looks again every second, and then takes as many as it can.
    """
    failed = LogThrottle()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif times := failed.due():
            extra = {"reason": str(context.get("exception")), "times": times}
            _log.error("accept_failed", extra=extra)

    if loop.get_exception_handler() is None:
        loop.set_exception_handler(handle)


def _never() -> bool:
    return False


_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound
_BACKLOG: Final = 2048


def listen(host: str, port: int) -> Listening:
    """Return a socket that listens already.

    Port 0 lets the system choose, no host means every address.

    Raises: OSError.
    """
    addresses = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, _, _, _, address = addresses[0]
    endpoint = str(address[0]), int(address[1])
    sock = socket.create_server(endpoint, family=family, backlog=_BACKLOG)
    # connections inherit it; without it every answer waits 40 ms for an acknowledgement
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # a machine that has gone says nothing; its push query would wait for rows for ever
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if option := getattr(socket, name, None):  # not every system has them
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return Listening(sock.family, sock.type, sock.proto, sock.detach())


def url(host: str, port: int, scheme: str = "http") -> str:
    """Return how a client on this machine reaches a socket that listens at that host and port."""
    name = "localhost" if host in _EVERYWHERE else host
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
