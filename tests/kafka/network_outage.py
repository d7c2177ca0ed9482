"""A broker that some of its clients reach by a way that can be cut."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.brokers import adapted_broker
from tests.kafka.cluster import free_port
from tests.waits import await_true

_CHUNK = 65536


class CuttableProxy:
    """A TCP proxy in a thread; while it is cut, it accepts nothing and carries nothing."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._cut = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="way", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Cut it; nothing is under way any more when this returns."""
        self._cut.set()
        await_true("nothing is under way", lambda: not self._pairs)

    def mend(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._closing.is_set():
                if self._cut.is_set():
                    for each in list(self._pairs):
                        self._drop(selector, each)
                for key, _ in selector.select(0.05):
                    connection = key.fileobj
                    assert isinstance(connection, socket.socket)
                    if connection is self._listener:
                        self._accept(selector)
                    elif connection in self._pairs:
                        self._carry(selector, connection)
            for each in list(self._pairs):
                self._drop(selector, each)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        near, _ = self._listener.accept()
        if self._cut.is_set():
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()  # the broker has ended
            return
        self._pairs |= {near: far, far: near}
        for each in (near, far):
            selector.register(each, selectors.EVENT_READ)

    def _carry(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        try:
            data = source.recv(_CHUNK)
            if data:
                self._pairs[source].sendall(data)
                return
        except OSError:
            pass  # the other side has gone: so does this one
        self._drop(selector, source)

    def _drop(self, selector: selectors.BaseSelector, one: socket.socket) -> None:
        if one not in self._pairs:  # its other side was dropped before
            return
        for each in (one, self._pairs[one]):
            del self._pairs[each]
            selector.unregister(each)
            each.close()


@contextlib.contextmanager
def broker_with_a_way(folder: Path) -> Iterator[tuple[str, str, CuttableProxy]]:
    """A broker: its own address, the address by the way, and the way."""
    side = free_port()
    way = CuttableProxy(side)

    def two_listeners(settings: dict[str, str]) -> None:
        settings["listeners"] += f",SIDE://127.0.0.1:{side}"
        settings["advertised.listeners"] += f",SIDE://127.0.0.1:{way.port}"
        settings["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SIDE:PLAINTEXT"
        )

    try:
        with adapted_broker(folder, two_listeners) as running:
            yield running.bootstrap, f"127.0.0.1:{way.port}", way
    finally:
        way.close()
