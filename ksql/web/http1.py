"""HTTP/1.1 as h11 and uvicorn have it, for whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

from ksql.web import unread
from ksql.web.config import patience_of
from ksql.web.websocket import fits

if TYPE_CHECKING:
    import asyncio


class Http1(H11Protocol):
    """uvicorn's HTTP/1.1; offers to change to another protocol than websockets are passed over."""

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        """Begin, with patience."""
        super().connection_made(transport)
        self._patience_s = patience_of(self.config)
        self._unread = unread.Unread(self.loop, self._patience_s, transport, self._hang_up)

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Continue."""
        super().resume_writing()
        self._unread.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._unread.end()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        unread.note(self.scope, self._patience_s)

    def _should_upgrade(self) -> bool:
        """A request that the websockets could not read is answered by the application instead."""
        return super()._should_upgrade() and fits(self.scope)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: some clients offer h2c with every request, as they may."""
