"""Gives each request an id, and counts answers by route and status, for ``/metrics``.

The id is that of the request's header traceparent, else a new one. A route is its pattern, as
``/status/{type_}/{entity}/{action}``, so a client cannot make series by asking for many paths.
Requests that no route answers are counted as ``other``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import TRACEPARENT, trace_of, traced

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ksql.core import Tally

OTHER: Final = "other"
_SWITCHED: Final = "101"


class RequestCounts:
    """An application whose answers are counted when they begin."""

    def __init__(self, app: ASGIApp, counts: Tally, paths: Collection[str]) -> None:
        """Take ``paths``: those that are routes by themselves, without a part that varies."""
        self._app = app
        self._counts = counts
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note the status of its answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            kind = message["type"]
            if kind == "http.response.start":
                self._counts.add(self._route(scope), str(message["status"]))
            elif kind == "websocket.accept":
                self._counts.add(self._route(scope), _SWITCHED)
            await send(message)

        await self._app(scope, receive, counted)

    def _route(self, scope: Scope) -> str:
        route = getattr(scope.get("route"), "path", None)
        if route is not None:
            return str(route).replace(":path}", "}")
        path = scope.get("path", "")
        return path if path in self._paths else OTHER


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
