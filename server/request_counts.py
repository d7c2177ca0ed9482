"""Counts answers by route and status, for ``/metrics``.

A route is its pattern, as ``/status/{type_}/{entity}/{action}``, so a client cannot make series by
asking for many paths. Requests that no route answers are counted as ``other``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
