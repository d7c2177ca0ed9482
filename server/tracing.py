"""Gives each request an id: that of its header traceparent, else a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import TRACEPARENT, trace_of, traced

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_NAME: Final = TRACEPARENT.encode()


class Tracing:
    """An application whose events carry the id of the request that they belong to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, in a context that knows its id."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == _NAME]
        header = sent[0].decode("latin-1") if len(sent) == 1 else ""
        with traced(trace_of(header)):
            await self._app(scope, receive, send)
