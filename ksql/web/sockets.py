"""Sockets that listen, and the URLs by which clients reach them."""

from __future__ import annotations

import socket
from typing import Final

from ksql.web.connections import Listening

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
    return Listening(sock.family, sock.type, sock.proto, sock.detach())


def url(host: str, port: int, scheme: str = "http") -> str:
    """Return how a client on this machine reaches a socket that listens at that host and port."""
    name = "localhost" if host in _EVERYWHERE else host
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
