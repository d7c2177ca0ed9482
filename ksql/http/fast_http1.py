"""HTTP/1.1: a short way for ordinary requests, with a parser of heads; else h11 by uvicorn.

A connection takes the short way as long as its requests are ordinary ones, as nearly all are.

h11 looks at every byte in Python, which takes longer than a look-up by key. It gets the connection
for good with the first head that is not ordinary, or that does not come in one piece. It alone
handles limits, bad requests, bodies in chunks and websockets.

The head of an ordinary request means the same to every reader of HTTP/1.1.

A head that fits is framed by one Content-Length at most, is addressed to one host and asks for no
change of the protocol. Any other is for h11, which knows all that there is.
Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import h11
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from ksql.http import timeouts
from ksql.http.exchange import Exchange
from ksql.http.read_sizes import turns_of
from ksql.http.timeouts import Flow, Idle, Patient, head_of, idle_of, write_timeout_of
from ksql.http.tls import certified, client_certificate
from ksql.http.websocket import fits

if TYPE_CHECKING:
    from collections.abc import Callable

    import uvicorn
    from h11 import Request
    from uvicorn.server import ServerState


class Ordinary(asyncio.Protocol):
    """One request after another, each given to the application."""

    flow: Flow

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._config = config
        self._app = config.loaded_app
        self._state = state
        self._app_state = app_state
        self._loop = loop
        self._patience_s = write_timeout_of(config)
        self._transport: asyncio.Transport
        self._ends: dict[str, Any] = {}  # what all scopes of the connection have in common
        self._exchange: Exchange | None = None  # the last one, when none is running
        self._missing = 0  # bytes of the body that are still to come
        self._next = b""  # what came after a request that is being answered

    # --- what the transport calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with patience."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - uvicorn makes no other
        self._transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]  # by its shape: ``shutdown``
        seconds = idle_of(self._config)
        self._idle = Idle(self._loop, seconds, transport, self._is_answering, transport.close)
        self._idle.expect_head(head_of(self._config))
        self.flow = Flow(transport, self._idle, lambda: len(self._next))
        self._unread = timeouts.Unread(self._loop, self._patience_s, transport, self._hang_up)
        self._ends = {
            "server": get_local_addr(transport),
            "client": get_remote_addr(transport),
            "scheme": "https" if is_ssl(transport) else "http",
            **client_certificate(transport),
        }

    def data_received(self, data: bytes) -> None:
        """Give it to the request that is being read, or begin the next one.

        Over TLS there may be more to come of a connection that has been closed.
        """
        if self._transport.is_closing():
            return
        exchange = self._exchange
        if exchange is None or self._is_free():
            self._begin(data)
            return
        if self._missing:
            self._idle.touch()
            data = self._feed(exchange, data)
        self._next += data
        if self._is_free():
            self._go_on()
        elif data:  # one request at a time, and no more of the next than has come already
            self.flow.pause_reading()

    def _is_free(self) -> bool:
        """Return whether the last request has been read and answered."""
        return not self._missing and (self._exchange is None or self._exchange.complete)

    def eof_received(self) -> None:
        """Leave the exchange: a client that ends its side has left, whatever it has not taken."""
        if self._exchange is not None:
            self._exchange.left()
        self.flow.resume_writing()
        self._unread.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its exchange: the client has left."""
        del exc
        self._state.connections.discard(self)
        self._idle.end()
        self._unread.end()
        if self._exchange is not None:
            self._exchange.left()
        self.flow.resume_writing()

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        self.flow.pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Continue."""
        self.flow.resume_writing()
        self._unread.taken()

    # --- what the server calls ------------------------------------------------------------------

    def shutdown(self) -> None:
        """Close, once the request that is being answered has its answer."""
        exchange = self._exchange
        if exchange is None or exchange.complete:
            self._transport.close()
        else:
            exchange.ends = True

    # --- requests -------------------------------------------------------------------------------

    def _begin(self, data: bytes) -> None:
        head = ordinary(data)
        if head is None:
            self._hand_over(data)
            return
        self._idle.head_came()
        self._missing = head.length
        exchange = self._exchange = Exchange(self, self._scope(head), closes=head.closes)
        self._next = self._feed(exchange, data[head.end :])
        if self._next:
            self.flow.pause_reading()
        task = self._loop.create_task(exchange.run(self._app))
        task.add_done_callback(self._state.tasks.discard)
        self._state.tasks.add(task)

    def _feed(self, exchange: Exchange, data: bytes) -> bytes:
        """Give the body what belongs to it; return what comes after."""
        body, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(body)
        if body or not self._missing:
            waiting = exchange.feed(body, more=bool(self._missing))
            if waiting > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
        return rest

    def _scope(self, head: Head) -> dict[str, Any]:
        raw_path, _, query = head.target.partition(b"?")
        path = raw_path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            **self._ends,
            "method": head.method,
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": head.headers,
            "state": self._app_state.copy(),
        }

    def _go_on(self) -> None:
        """Begin with what has come after the last request, or wait for it."""
        data, self._next = self._next, b""
        self.flow.resume_reading()
        if data:
            self._begin(data)

    def _hand_over(self, data: bytes) -> None:
        """Let h11 continue from here."""
        self._state.connections.discard(self)
        self._idle.end()
        self._unread.end()
        other = Http1(self._config, self._state, self._app_state, self._loop)
        self._transport.set_protocol(other)
        other.connection_made(self._transport)
        if self._exchange is not None:
            other.conn.their_http_version = b"1.1"  # which decides how a 400 is framed
        if self.flow.write_paused:  # of which the transport speaks once only
            other.pause_writing()
        other.data_received(data)

    # --- what an exchange calls -----------------------------------------------------------------

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that every answer has: the date and the server's name."""
        return self._state.default_headers

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def soon(self, work: Callable[[], None]) -> None:
        self._loop.call_soon(work)

    def answered(self, *, closes: bool) -> None:
        """Continue, or end; the rest of a body that nobody has read is taken and forgotten."""
        self._state.total_requests += 1
        self._idle.touch()
        if closes:
            self._transport.close()
        if self._transport.is_closing():
            return
        self.flow.resume_reading()
        if self._is_free():
            self._go_on()

    def close(self) -> None:
        self._transport.close()

    def _is_answering(self) -> bool:
        return self._exchange is not None and self._exchange.is_answering

    def _hang_up(self) -> None:
        timeouts.note({} if self._exchange is None else self._exchange.scope, self._patience_s)


_LONGEST: Final = 8_192
_HEAD: Final = re.compile(
    rb"(GET|POST) (/[\x21-\x7e]*+) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t\x20-\x7e\x80-\xff]*+\r\n)++)\r\n"
)
_LONGEST_NUMBER: Final = 15
_KEPT: Final = (b"keep-alive", b"")
_CLOSED: Final = b"close"
# what these ask for takes more than an answer
_OTHERS: Final = frozenset((b"transfer-encoding", b"upgrade", b"expect", b"http2-settings"))


class Head(NamedTuple):
    """A request's head; ``end`` is where its body begins, ``length`` what it takes."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    end: int
    length: int
    closes: bool


def ordinary(data: bytes) -> Head | None:
    """Return the head that the bytes begin with; None if it is no ordinary one, or not whole."""
    match = _HEAD.match(data)
    if match is None or match.end() > _LONGEST:
        return None
    headers = []
    hosts, length, closes = 0, None, False
    for line in match[3].splitlines():
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        headers.append((name, value))
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            if length is not None or not value.isdigit() or len(value) > _LONGEST_NUMBER:
                return None
            length = int(value)
        elif name == b"connection":
            wish = value.lower()
            if closes or wish not in (*_KEPT, _CLOSED):
                return None
            closes = wish == _CLOSED
        elif name in _OTHERS:
            return None
    if hosts != 1:
        return None
    return Head(match[1].decode(), match[2], headers, match.end(), length or 0, closes)


class Http1(Patient, H11Protocol):
    """uvicorn's HTTP/1.1; offers to change to another protocol than websockets are passed over."""

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        """Begin, with patience."""
        super().connection_made(transport)
        self.app = certified(self.app, transport)
        self.watch_unread(self.loop, write_timeout_of(self.config), transport)
        seconds = idle_of(self.config)
        self._idle = Idle(self.loop, seconds, transport, self._is_answering, transport.close)
        self.flow = self._flow = Flow(transport, self._idle, self._kept)
        self._in_head = False
        self._idle.expect_head(head_of(self.config))

    def data_received(self, data: bytes) -> None:
        """Read on, unless the connection is closed; over TLS there may be more to come even then.

        The bytes of one head have one time for all of them.
        """
        if self.transport.is_closing():
            return
        if not self._in_head:
            self._idle.touch()
        take = partial(self._take, data)
        if pause_s := turns_of(self.loop).pause_after(self.loop.time, take):
            self._flow.rest(self.loop, pause_s)

    def _take(self, data: bytes) -> None:
        super().data_received(data)
        self._look_at_head()

    def _look_at_head(self) -> None:
        self._in_head = self.conn.their_state is h11.IDLE and self._kept() > 0
        if self._in_head:
            self._idle.expect_head(head_of(self.config))
        else:
            self._idle.head_came()

    def eof_received(self) -> None:
        """Leave the request, as ``Ordinary`` does."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.flow.resume_writing()
        self._unread.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._idle.end()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Continue; how long the connection may be idle is not uvicorn's business."""
        self._idle.touch()
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._look_at_head()

    def handle_websocket_upgrade(self, event: Request) -> None:
        """Leave the connection to the websocket, which may be idle."""
        self._idle.end()
        super().handle_websocket_upgrade(event)

    def _is_answering(self) -> bool:
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.disconnected:
            return False
        begun = cycle.response_started or not cycle.more_body
        return begun or cycle.waiting_for_100_continue or len(cycle.body) > 0

    def _kept(self) -> int:
        return len(self.conn.trailing_data[0])

    def _should_upgrade(self) -> bool:
        """Return False for what the websockets could not read: the application answers it."""
        return super()._should_upgrade() and fits(self.scope)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: some clients offer h2c with every request, as they may."""
