"""HTTP/1.1 as h11 and uvicorn have it, for whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ksql.http.config import head_of, idle_of, patience_of
from ksql.http.idle import Flow, Idle
from ksql.http.websocket import fits
from ksql.http.write_timeout import Patient

if TYPE_CHECKING:
    import asyncio

    from h11 import Request


class Http1(Patient, H11Protocol):
    """uvicorn's HTTP/1.1; offers to change to another protocol than websockets are passed over."""

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        """Begin, with patience."""
        super().connection_made(transport)
        self.watch_unread(self.loop, patience_of(self.config), transport)
        seconds = idle_of(self.config)
        self._idle = Idle(self.loop, seconds, transport, self._is_answering, transport.close)
        self.flow = Flow(transport, self._idle, self._kept)
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
        super().data_received(data)
        self._look_at_head()

    def _look_at_head(self) -> None:
        self._in_head = self.conn.their_state is h11.IDLE and self._kept() > 0
        if self._in_head:
            self._idle.expect_head(head_of(self.config))
        else:
            self._idle.head_came()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock: the client has left."""
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
