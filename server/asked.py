"""A route's demands on a request, as FastAPI's dependencies: the door, the body, the media type.

FastAPI's own bodies need a JSON content type; clients of ksqlDB, and ``curl -d``, send others.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from server.context import Door
from server.negotiate import negotiate
from server.wire import JSON, V1_JSON, Body, parse_body

B = TypeVar("B", bound=Body)


async def _door(request: Request) -> Door:
    return cast("Door", request.app.state.door)


def accepts(*offered: str) -> Any:
    """Return the offered media type that the client wants; 406 when it wants none."""

    async def chosen(request: Request) -> str:
        return negotiate(request.headers.get("accept"), offered)

    return Depends(chosen)


def body_of(kind: type[B]) -> Any:
    """Return the request's JSON body, whatever its content type says; a 400 names a wrong field."""

    async def read(request: Request) -> B:
        return parse_body(await request.body(), kind)

    return Depends(read)


TheDoor = Annotated[Door, Depends(_door)]
JsonKind = Annotated[str, accepts(V1_JSON, JSON)]
