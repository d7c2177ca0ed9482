"""One request and its answer on an HTTP/2 connection, as ASGI has them.

Both directions are bounded. A body that the application has not read is not credited to the client.
The application waits while the client has given no credit for more of the answer. Source: ASGI
specification, HTTP; RFC 9113, flow control.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import h2.errors
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from ksql.http import write_timeout

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from ksql.http.http2 import Http2

_log: Final = logging.getLogger("uvicorn.error")
# of HTTP/1.1's connection, which an application may still name
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 1 << 24


def scope_of(
    headers: Iterable[tuple[bytes, bytes]], transport: asyncio.Transport
) -> dict[str, Any]:
    """Return a request's head for the application; the authority becomes the header ``host``."""
    pseudo = {name: value for name, value in headers if name.startswith(b":")}
    plain = [(name, value) for name, value in headers if not name.startswith(b":")]
    authority = pseudo.get(b":authority")
    if authority is not None and all(name != b"host" for name, _ in plain):
        plain.insert(0, (b"host", authority))
    path, _, query = pseudo.get(b":path", b"/").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "server": get_local_addr(transport),
        "client": get_remote_addr(transport),
        "scheme": "https" if is_ssl(transport) else "http",
        "method": pseudo[b":method"].decode("latin-1"),
        "root_path": "",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "headers": plain,
        "state": {},
    }


class Stream:
    """A request; ``run`` gives it to the application."""

    def __init__(self, connection: Http2, number: int, scope: dict[str, Any]) -> None:
        self.number = number
        self._connection = connection
        self._scope = scope
        self._body = bytearray()
        self._uncredited = 0
        self._whole = False  # the request has been received
        self._gone = False  # the client has left, or the answer was broken off
        self._started = False
        self._complete = False
        self._news = asyncio.Event()
        self._credit = asyncio.Event()

    # --- what the connection calls --------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether the client waits for the answer, and the application not for the client."""
        begun = self._started or self._whole or len(self._body) > 0
        return begun and not self._complete and not self._gone

    def feed(self, data: bytes, length: int) -> bool:
        """Take a part of the body, ``length`` bytes of credit; False if nobody will read it."""
        if self._gone:
            return False
        if not self._complete:
            self._body += data
        self._uncredited += length
        self._news.set()
        return True

    def request_ended(self) -> None:
        """Take note that the body is whole."""
        self._whole = True
        self._news.set()

    def credited(self) -> None:
        """Take note that the client takes more of the answer."""
        self._credit.set()

    def left(self) -> None:
        """Take note that the client does not want the answer any more."""
        self._gone = True
        self._news.set()
        self._credit.set()

    # --- the application ------------------------------------------------------------------------

    async def run(self) -> None:
        """Let the application answer; if it fails, the client learns that it did."""
        try:
            await self._connection.app(self._scope, self._receive, self._send)
            if not self._complete and not self._gone:
                _log.error("ASGI callable returned without completing response.")
                self._break_off()
            await self._linger()
        except Exception as error:  # noqa: BLE001 - the last place that can answer the client
            _log.exception("Exception in ASGI application\n", exc_info=error)
            await self._fail()
        except asyncio.CancelledError:
            self._break_off()
            raise
        finally:
            self._credit_rest()
            self._connection.answered(self)

    async def _receive(self) -> dict[str, Any]:
        while not (self._gone or self._complete or self._news.is_set()):
            await self._news.wait()
        if self._gone or self._complete:
            return {"type": "http.disconnect"}
        self._news.clear()
        body = bytes(self._body)
        self._body.clear()
        self._credit_rest()
        return {"type": "http.request", "body": body, "more_body": not self._whole}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self._gone:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
            await self._connection.writable.wait()
        else:
            body = b"" if self._scope["method"] == "HEAD" else message.get("body", b"")
            await self._write(body, last=not message.get("more_body", False))

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        head = [(b":status", str(status).encode())]
        for name, value in (*self._connection.default_headers, *headers):
            if (lowered := name.lower()) not in _OF_CONNECTIONS:
                head.append((lowered, value))
        self._connection.frames.send_headers(self.number, head)
        self._started = True
        self._connection.flush()

    async def _write(self, body: bytes, *, last: bool) -> None:
        """Send as much as the client has credited, and wait for more credit till all is sent."""
        frames = self._connection.frames
        rest = memoryview(body)
        while rest or last:
            await self._connection.writable.wait()
            if self._gone:
                return
            room = min(
                frames.local_flow_control_window(self.number), frames.max_outbound_frame_size
            )
            if rest and room <= 0:
                await self._await_credit()
                continue
            piece, rest = rest[:room], rest[room:]
            ends = last and not rest
            frames.send_data(self.number, bytes(piece), end_stream=ends)
            if ends:
                self._end()
            self._connection.flush()
            if ends:
                return

    async def _await_credit(self) -> None:
        """Wait until the client takes more; break off if it does not."""
        self._credit.clear()
        try:
            await asyncio.wait_for(self._credit.wait(), self._connection.patience_s)
        except TimeoutError:
            self.note_unread()
            self.left()
            self._connection.reset(self.number, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)

    def note_unread(self) -> None:
        """Log that the client takes nothing of the answer."""
        write_timeout.note(self._scope, self._connection.patience_s)

    def _end(self) -> None:
        """End the answer, which is whole; what the client has not sent yet is not wanted."""
        self._complete = True
        self._news.set()

    async def _linger(self) -> None:
        """Take the rest of an unwanted body as it comes: some clients read only after sending."""
        taken = 0
        with contextlib.suppress(TimeoutError):
            while not (self._whole or self._gone) and taken < _LINGER_BYTES:
                self._news.clear()
                taken += self._uncredited
                self._credit_rest()
                await asyncio.wait_for(self._news.wait(), _LINGER_S)
        if self._complete and not self._whole and not self._gone:
            self._connection.reset(self.number, h2.errors.ErrorCodes.NO_ERROR)

    async def _fail(self) -> None:
        if self._started or self._gone:
            self._break_off()
            return
        self._start(500, [(b"content-type", b"text/plain; charset=utf-8")])
        await self._write(b"Internal Server Error", last=True)

    def _break_off(self) -> None:
        if not self._complete and not self._gone:
            self._gone = True
            self._connection.reset(self.number, h2.errors.ErrorCodes.INTERNAL_ERROR)

    def _credit_rest(self) -> None:
        """Let the client send as much again as has been read."""
        credit, self._uncredited = self._uncredited, 0
        if credit:
            self._connection.credit(self.number, credit)
