"""An HTTP/2 connection, and each of its streams as a request and answer in ASGI's terms.

Source: RFC 9113. The frames are read and written by ``h2``; uvicorn has the sockets and the stop.

Both directions are bounded. A body that the application has not read is not credited to the client.
The application waits while the client has given no credit for more of the answer. Source: ASGI
specification, HTTP; RFC 9113, flow control.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from h2.settings import SettingCodes, Settings
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from ksql.http import timeouts
from ksql.http.read_sizes import turns_of
from ksql.http.timeouts import Idle, head_of, idle_of, write_timeout_of
from ksql.http.tls import client_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    import uvicorn
    from uvicorn.server import ServerState


_log: Final = logging.getLogger("uvicorn.error")
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST_STREAMS: Final = 256  # push queries, whose limit is 100, and statements besides
_STREAM_WINDOW: Final = 65_535  # what a request may send before it is read
_WINDOW: Final = _STREAM_WINDOW * MOST_STREAMS  # an unread request must not stop the others

_SETTINGS: Final = {
    SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
    SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
    SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
}


class Http2(asyncio.Protocol):
    """A connection; its streams run as tasks of the server's, so that a stop waits for them."""

    def __init__(
        self, config: uvicorn.Config, state: ServerState, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.app = config.loaded_app
        self.patience_s = write_timeout_of(config)
        self._idle_s = idle_of(config)
        self._head_s = head_of(config)
        self.frames = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        self.frames.local_settings = Settings(client=False, initial_values=_SETTINGS)
        self.writable = asyncio.Event()
        self.writable.set()
        self._state = state
        self._loop = loop
        self._transport: asyncio.Transport
        self._streams: dict[int, Stream] = {}
        self._ending = False
        self._resting = False  # others have their turn
        self.sent = 0
        """Bytes of all answers."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that every answer has: the date and the server's name."""
        return self._state.default_headers

    def now_s(self) -> float:
        """Return the loop's time."""
        return self._loop.time()

    # --- what the transport calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the client the settings of this end."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - uvicorn makes no other
        self._transport = transport
        self._unread = timeouts.Unread(self._loop, self.patience_s, transport, self._hang_up_on_all)
        self._idle = Idle(self._loop, self._idle_s, transport, self._is_answering, self._close)
        self._idle.expect_head(self._head_s)
        self._state.connections.add(self)  # type: ignore[arg-type]  # by its shape: ``shutdown``
        self.frames.initiate_connection()
        self.frames.increment_flow_control_window(_WINDOW - _STREAM_WINDOW)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Hand frames to their streams, and let other connections have their turn.

        Over TLS there may be more to come of a connection that has been closed.
        """
        if self._transport.is_closing():
            return
        take = partial(self._take_frames, data)
        pause_s = turns_of(self._loop).pause_after(self._loop.time, take)
        if pause_s and not self._resting:
            self._resting = True
            self._transport.pause_reading()
            self._loop.call_later(pause_s, self._go_on)

    def _go_on(self) -> None:
        self._resting = False
        if self.writable.is_set() and not self._transport.is_closing():
            self._transport.resume_reading()

    def _take_frames(self, data: bytes) -> None:
        """Hand them on; a client that breaks the protocol is hung up on."""
        try:
            for event in self.frames.receive_data(data):
                self._idle.touch()  # by whole frames only
                self._handle(event)
        except h2.exceptions.ProtocolError as error:
            _log.warning("Invalid HTTP/2 frame received: %s", error)
            self._hang_up()  # h2 has queued the GOAWAY that says why
            return
        self.flush()
        self._close_if_done()

    def eof_received(self) -> None:
        """Leave all its streams: the client asks and credits nothing any more."""
        self._leave()
        self.writable.set()
        self._unread.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave all its streams: the client has left."""
        del exc
        self._state.connections.discard(self)
        self._idle.end()
        self._unread.end()
        self.writable.set()
        self._leave()

    def pause_writing(self) -> None:
        """Stop reading too: what is owed to a client that does not read must not pile up."""
        self.writable.clear()
        self._transport.pause_reading()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Continue to write and to read."""
        self.writable.set()
        self._unread.taken()
        if not self._resting and not self._transport.is_closing():
            self._transport.resume_reading()

    def shutdown(self) -> None:
        """Take no more requests; the connection is closed after its last answer."""
        self._ending = True
        self._close_if_done()

    # --- what streams call ----------------------------------------------------------------------

    def flush(self) -> None:
        """Write the frames that are ready."""
        data = self.frames.data_to_send()
        if data and not self._transport.is_closing():
            self._idle.touch()
            self._transport.write(data)

    def credit(self, number: int, length: int) -> None:
        """Let the client send that many bytes more."""
        if not self._transport.is_closing():
            self.frames.acknowledge_received_data(length, number)
            self.flush()

    def reset(self, number: int, code: h2.errors.ErrorCodes) -> None:
        """Break a stream off."""
        if not self._transport.is_closing():
            self.frames.reset_stream(number, code)
            self.flush()

    def goes_last(self, stream: Stream) -> None:
        """Let the other streams have what the client credits next."""
        self._streams[stream.number] = self._streams.pop(stream.number)

    def answered(self, stream: Stream) -> None:
        """Forget a stream whose task has ended."""
        self._streams.pop(stream.number, None)
        self._state.total_requests += 1
        self._close_if_done()

    # --- events ---------------------------------------------------------------------------------

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._begin(event)
            case h2.events.DataReceived():
                self._take(event)
            case h2.events.StreamEnded():
                if stream := self._streams.get(event.stream_id):
                    stream.request_ended()
            case h2.events.StreamReset():
                if stream := self._streams.get(event.stream_id):
                    stream.left()
            case h2.events.WindowUpdated() if event.stream_id:
                if stream := self._streams.get(event.stream_id):
                    stream.credited()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.credited()
            case h2.events.ConnectionTerminated():
                self._hang_up()
            case _:
                pass  # priorities, pings and acknowledgements: h2 has answered them

    def _begin(self, event: h2.events.RequestReceived) -> None:
        self._idle.head_came()
        # streams that were reset count until their work has ended
        if self._ending or len(self._streams) >= MOST_STREAMS:
            self.frames.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        scope = scope_of(event.headers, self._transport)
        stream = self._streams[event.stream_id] = Stream(self, event.stream_id, scope)
        task = self._loop.create_task(stream.run())
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def _take(self, event: h2.events.DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None or not stream.feed(event.data, event.flow_controlled_length):
            self.frames.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    # --- the end --------------------------------------------------------------------------------

    def _close_if_done(self) -> None:
        if self._ending and not self._streams and not self._transport.is_closing():
            self._close()

    def _is_answering(self) -> bool:
        return any(stream.is_answering for stream in self._streams.values())

    def _leave(self) -> None:
        for stream in self._streams.values():
            stream.left()

    def _hang_up_on_all(self) -> None:
        for stream in self._streams.values():
            stream.note_unread()

    def _hang_up(self) -> None:
        """Close at once: after an error or a farewell no stream can be answered any more."""
        self._leave()
        self.flush()
        self._transport.close()

    def _close(self) -> None:
        self.frames.close_connection()
        self.flush()
        self._transport.close()


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
        **client_certificate(transport),
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
        self._owed_since_s: float | None = None
        self._sent_then = 0  # by the connection, when this stream began to wait

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
        """Send as much as the client has credited, and wait for more credit till all is sent.

        Credit of other streams is no credit of this one.
        """
        frames = self._connection.frames
        rest = memoryview(body)
        self._owed_since_s = None
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
            self._owed_since_s = None
            piece, rest = rest[:room], rest[room:]
            ends = last and not rest
            frames.send_data(self.number, bytes(piece), end_stream=ends)
            self._connection.sent += len(piece)
            if ends:
                self._end()
            self._connection.flush()
            if ends:
                return

    async def _await_credit(self) -> None:
        """Wait until the client takes more; break off if it has not for too long."""
        self._credit.clear()
        rest_s = self._owed_since() + self._connection.patience_s - self._connection.now_s()
        try:
            await asyncio.wait_for(self._credit.wait(), rest_s)
        except TimeoutError:
            self.note_unread()
            self.left()
            self._connection.reset(self.number, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)

    def _owed_since(self) -> float:
        """Return since when the client owes it credit.

        A stream that lacks only the connection's waits for its turn while others are sent.
        """
        connection = self._connection
        own = connection.frames.streams[self.number].outbound_flow_control_window
        if self._owed_since_s is None:
            connection.goes_last(self)
        elif own <= 0 or connection.sent == self._sent_then:
            return self._owed_since_s
        self._owed_since_s, self._sent_then = connection.now_s(), connection.sent
        return self._owed_since_s

    def note_unread(self) -> None:
        """Log that the client takes nothing of the answer."""
        timeouts.note(self._scope, self._connection.patience_s)

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
