"""An application under the server of every application, and a client that speaks frames."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h2.config
import h2.connection
import h2.events

from ksql.http.connections import HEAD_S, Connections, listen
from ksql.http.hosting import HttpServer
from ksql.http.timeouts import IDLE_S

PATIENCE_S = 30.0
GRACE_S = 1


@contextlib.contextmanager
def hosted(
    app: Any,
    tls: ssl.SSLContext | None = None,
    patience_s: float = PATIENCE_S,
    idle_s: float = IDLE_S,
    head_s: float = HEAD_S,
    connections: Connections | None = None,
) -> Iterator[int]:
    """The application on a free port."""
    with listen("127.0.0.1", 0) as sock:
        server = HttpServer(app, [sock], GRACE_S, tls, patience_s, idle_s, head_s, connections)
        server.start("http")
        try:
            yield sock.getsockname()[1]
        finally:
            server.stop()


class Frames:
    """A client of HTTP/2 that gives credit only when it is asked to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()
        self.seen: list[h2.events.Event] = []

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())

    def request(self, path: str, *, method: str = "GET", end: bool = True, **more: str) -> int:
        number = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "http"), (":path", path)]
        authority = more.pop("authority", f"127.0.0.1:{self.port}")
        self.h2.send_headers(number, [*head, (":authority", authority), *more.items()], end)
        self.flush()
        return number

    def send(self, number: int, data: bytes, *, end: bool = False) -> None:
        self.h2.send_data(number, data, end)
        self.flush()

    def credit(self, number: int, length: int) -> None:
        self.h2.increment_flow_control_window(length)
        self.h2.increment_flow_control_window(length, number)
        self.flush()

    def until(self, enough: Callable[[], bool]) -> None:
        """Read frames until that holds."""
        while not enough():
            data = self.sock.recv(1 << 16)
            assert data, "the server has closed the connection"
            self.seen += self.h2.receive_data(data)
            self.flush()

    def body(self, number: int) -> bytes:
        """The part of an answer that has come."""
        kind = h2.events.DataReceived
        return b"".join(e.data for e in self.seen if isinstance(e, kind) and e.stream_id == number)

    def of(self, kind: type, number: int) -> list[Any]:
        """The events of a kind on a stream."""
        events = (e for e in self.seen if isinstance(e, kind))
        return [e for e in events if getattr(e, "stream_id", None) == number]

    def headers(self, number: int) -> dict[str, str]:
        """The head of an answer."""
        self.until(lambda: bool(self.of(h2.events.ResponseReceived, number)))
        return dict(self.of(h2.events.ResponseReceived, number)[0].headers)

    def whole(self, number: int) -> bytes:
        """An answer that ends, as far as the credit reaches."""
        self.until(lambda: bool(self.of(h2.events.StreamEnded, number)))
        return self.body(number)


class Endless:
    """An application that sends for as long as the client stays, and counts."""

    def __init__(self) -> None:
        self.running = 0
        self.sent = 0
        self.left = threading.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        self.running += 1

        async def rows() -> None:
            while True:
                await send({"type": "http.response.body", "body": b"r" * 1000, "more_body": True})
                self.sent += 1000
                await asyncio.sleep(0)

        sending = asyncio.ensure_future(rows())
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()
        self.running -= 1
        self.left.release()
