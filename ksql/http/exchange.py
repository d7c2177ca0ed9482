"""One ordinary request of HTTP/1.1 and its answer, as ASGI has them.

The head of an answer waits for the first piece of its body if that comes at once. So there is one
write, and one packet, instead of two. Source: ASGI specification, HTTP; RFC 9112, section 6.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from uvicorn.protocols.http.h11_impl import STATUS_PHRASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping

    from starlette.types import ASGIApp
    from uvicorn.protocols.http.flow_control import FlowControl

_log: Final = logging.getLogger("uvicorn.error")
_SOUND: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++: [\t\x20-\x7e\x80-\xff]*+\r\n)*+")
_BODILESS: Final = (204, 304)
_STATUS: Final = {
    status: b"HTTP/1.1 %d %s\r\n" % (status, phrase) for status, phrase in STATUS_PHRASES.items()
}


class BadAnswer(RuntimeError):
    """An application that breaks the rules of ASGI or of HTTP."""


class Connection(Protocol):
    """A connection as its exchanges see it."""

    @property
    def flow(self) -> FlowControl:
        """When it should pause."""

    @property
    def default_headers(self) -> Iterable[tuple[bytes, bytes]]:
        """The headers that every answer has."""

    def write(self, data: bytes) -> None:
        """Send."""

    def soon(self, work: Callable[[], None]) -> None:
        """Call it once what runs now has paused."""

    def answered(self, *, closes: bool) -> None:
        """Take note that an answer is whole."""

    def close(self) -> None:
        """Hang up, once all is sent."""


class Exchange:
    """A request; ``run`` gives it to the application."""

    def __init__(self, connection: Connection, scope: dict[str, Any], *, closes: bool) -> None:
        """Take ``closes``: whether the client wants the connection to end with the answer."""
        self.scope = scope
        self.complete = False
        self.ends = closes
        self._connection = connection
        self._says_close = closes
        self._body = b""
        self._more_body = True
        self._gone = False
        self._news = asyncio.Event()
        self._started = False
        self._head = b""
        self._left: int | None = None  # of a body whose length was stated

    # --- what the connection calls --------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether the client waits for the answer, and the application not for the client."""
        begun = self._started or not self._more_body or len(self._body) > 0
        return begun and not self.complete and not self._gone

    def feed(self, data: bytes, *, more: bool) -> int:
        """Take a part of the body; return how much of it waits to be read."""
        if not self.complete:
            self._body = self._body + data if self._body else data
        self._more_body = more
        self._news.set()
        return len(self._body)

    def left(self) -> None:
        """Take note that the client has gone."""
        self._gone = not self.complete
        self._news.set()

    # --- the application ------------------------------------------------------------------------

    async def run(self, app: ASGIApp) -> None:
        """Let the application answer; if it fails, the client learns that it did."""
        try:
            await app(self.scope, self._receive, self._send)
        except BaseException as error:  # noqa: BLE001 - the last place that can answer the client
            _log.error("Exception in ASGI application\n", exc_info=error)
            await self._fail()
        else:
            if not self.complete and not self._gone:
                _log.error("ASGI callable returned without completing response.")
                await self._fail()

    async def _receive(self) -> dict[str, Any]:
        if not self._gone and not self.complete:
            self._connection.flow.resume_reading()
            await self._news.wait()
            self._news.clear()
        if self._gone or self.complete:
            return {"type": "http.disconnect"}
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": self._more_body}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        flow = self._connection.flow
        if flow.write_paused and not self._gone:
            await flow.drain()
        if self._gone:
            return
        if self.complete:
            raise BadAnswer("the answer is whole already")
        if not self._started:
            _check_type(message, "http.response.start")
            self._start(message["status"], message.get("headers", ()))
        else:
            _check_type(message, "http.response.body")
            self._write(message.get("body", b""), last=not message.get("more_body", False))

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._started = True
        length, says_close, lines = None, False, []
        for name, value in (*self._connection.default_headers, *headers):
            lowered = name.lower()
            if lowered == b"content-length":
                length = int(value)
            elif lowered == b"connection":
                says_close = says_close or b"close" in value.lower()
            lines.append(b"%s: %s\r\n" % (name, value))
        fields = b"".join(lines)
        if not _SOUND.fullmatch(fields) or fields.count(b"\n") != len(lines):
            raise BadAnswer("a header of the answer cannot be sent")
        if self._says_close and not says_close:
            fields += b"connection: close\r\n"
        self.ends = self.ends or says_close
        self._left = 0 if status in _BODILESS else length
        if self._left is None:
            fields += b"transfer-encoding: chunked\r\n"
        self._head = _STATUS[status] + fields + b"\r\n"
        self._connection.soon(self._flush)

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._gone:
            self._connection.write(head)

    def _write(self, body: bytes, *, last: bool) -> None:
        data = self._head
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0:
                raise BadAnswer("the answer's body is longer than its head says")
            data += body
        else:
            if body:
                data += b"%x\r\n%s\r\n" % (len(body), body)
            if last:
                data += b"0\r\n\r\n"
        self._head = b""
        if data:
            self._connection.write(data)
        if last and self._left:
            raise BadAnswer("the answer's body is shorter than its head says")
        if last:
            self.complete = True
            self._news.set()
            self._connection.answered(closes=self.ends)

    async def _fail(self) -> None:
        if self._started:
            self._flush()
            self._connection.close()
        elif not self._gone:
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            await self._send({"type": "http.response.start", "status": 500, "headers": headers})
            await self._send({"type": "http.response.body", "body": b"Internal Server Error"})


def _check_type(message: MutableMapping[str, Any], expected: str) -> None:
    if message["type"] != expected:
        raise BadAnswer(f"'{expected}' was expected, not '{message['type']}'")
