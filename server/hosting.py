"""A service behind HTTP inside a process that does more than serve: the demo, test files."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import uvicorn

from server.app import create_app
from server.context import Door

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from ksql.base.access import Access
    from server.facade import Service

_GRACE_S = 2
_POLL_S = 0.02


def http_config(door: Door, grace_s: int, access: Access | None = None) -> uvicorn.Config:
    """How HTTP is served; ``grace_s`` is how long running answers may take to end at a stop."""
    return uvicorn.Config(
        create_app(door=door, access=access),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=grace_s,
    )


@contextlib.contextmanager
def behind_http(service: Service, sockets: Sequence[socket.socket]) -> Iterator[Door]:
    """Answer on these sockets for a service that runs; whoever gives them starts and stops both."""
    door = Door(service)
    http = uvicorn.Server(http_config(door, _GRACE_S))
    thread = threading.Thread(target=http.run, args=(list(sockets),), name="http", daemon=True)
    thread.start()
    try:
        while not http.started and thread.is_alive():
            time.sleep(_POLL_S)
        yield door
    finally:
        door.shut()
        http.should_exit = True
        thread.join()
        door.release()
