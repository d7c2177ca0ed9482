"""One HTTP/2 connection: frames to streams, each of which is a request of its own.

Source: RFC 9113. The frames are read and written by ``h2``; uvicorn has the sockets and the stop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from h2.settings import SettingCodes, Settings

from ksql.http import write_timeout
from ksql.http.config import head_of, idle_of, patience_of
from ksql.http.idle import Idle
from ksql.http.stream import Stream, scope_of

if TYPE_CHECKING:
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
        self.patience_s = patience_of(config)
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

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that every answer has: the date and the server's name."""
        return self._state.default_headers

    # --- what the transport calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the client the settings of this end."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - uvicorn makes no other
        self._transport = transport
        self._unread = write_timeout.Unread(
            self._loop, self.patience_s, transport, self._hang_up_on_all
        )
        self._idle = Idle(self._loop, self._idle_s, transport, self._is_answering, self._close)
        self._idle.expect_head(self._head_s)
        self._state.connections.add(self)  # type: ignore[arg-type]  # by its shape: ``shutdown``
        self.frames.initiate_connection()
        self.frames.increment_flow_control_window(_WINDOW - _STREAM_WINDOW)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Hand frames to their streams; a client that breaks the protocol is hung up on.

        Over TLS there may be more to come of a connection that has been closed.
        """
        if self._transport.is_closing():
            return
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
        self._unread.end()
        if not self._transport.is_closing():
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
