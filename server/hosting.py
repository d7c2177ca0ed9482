"""A service behind HTTP inside a process that does more than serve: the demo, test files."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ksql.http.hosting import HttpServer
from server.app import create_app
from server.context import AppContext

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from server.service import Service

_GRACE_S = 2


@contextlib.contextmanager
def behind_http(service: Service, sockets: Sequence[socket.socket]) -> Iterator[AppContext]:
    """Answer on these sockets for a running service; the caller starts and stops both."""
    context = AppContext(service)
    http = HttpServer(create_app(context=context), sockets, _GRACE_S)
    http.start("http")
    try:
        yield context
    finally:
        context.shut()
        http.stop()
        context.release()
