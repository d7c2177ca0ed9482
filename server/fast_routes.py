"""The paths that are asked most are answered before the framework looks for a route.

Finding a route, guarding it and resolving its dependencies takes FastAPI longer than a look-up by
key takes in all. FastAPI still describes these routes, and answers every other method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ksql.control.statements import RequestFailed
from ksql.core import KsqlError
from server.errors import plain_response, response_of

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

Answers = Mapping[str, Callable[[Request], Awaitable["Response"]]]


class FastRoutes:
    """An application whose POST requests to some paths are answered by functions."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        """Take ``answers``: the functions by path."""
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        answer = self._answers.get(scope.get("path", ""))
        if answer is None or scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            response = await answer(Request(scope, receive, send))
        except HTTPException as error:
            response = plain_response(error)
        except (KsqlError, RequestFailed) as error:
            response = response_of(error)
        await response(scope, receive, send)
