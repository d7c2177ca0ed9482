"""FastAPI's dependencies of routes: the application context, the body, media types.

FastAPI's own bodies need a JSON content type; clients of ksqlDB, and ``curl -d``, send others.

Of an endpoint's media types, the client's headers choose one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from server.context import AppContext
from server.wire import JSON, V1_JSON, Body, parse_body


def negotiate(accept: str | None, offered: tuple[str, ...]) -> str:
    """Return the offered type that the Accept header likes best; the first one offered breaks ties.

    Raises: HTTPException 406 when it likes none.
    """
    if accept is None or not accept.strip():
        return offered[0]
    media_ranges = [
        media_range for part in accept.split(",") if (media_range := _media_range(part)) is not None
    ]
    scored = [(_quality(kind, media_ranges), -index) for index, kind in enumerate(offered)]
    quality, index = max(scored)
    if quality <= 0:
        raise HTTPException(406)
    return offered[-index]


def _media_range(part: str) -> tuple[str, float] | None:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
    return (kind, quality) if "/" in kind else None


def _quality(kind: str, media_ranges: list[tuple[str, float]]) -> float:
    """Return the quality that the most specific matching media_range gives to a media type."""
    family = kind.partition("/")[0] + "/*"
    for pattern in (kind, family, "*/*"):
        qualities = [quality for media_range, quality in media_ranges if media_range == pattern]
        if qualities:
            return max(qualities)
    return 0.0


B = TypeVar("B", bound=Body)


def context_of(request: Request) -> AppContext:
    """Return the application context of the request."""
    return cast("AppContext", request.app.state.context)


async def _context(request: Request) -> AppContext:
    return context_of(request)


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


async def accepted_body(request: Request, offered: Collection[str], kind: type[B]) -> tuple[str, B]:
    """Return the media type that the client wants and the body, for routes of many requests.

    FastAPI takes longer to resolve its dependencies than a look-up takes in all.
    Raises: what ``accepts`` and ``body_of`` raise.
    """
    chosen = negotiate(request.headers.get("accept"), tuple(offered))
    return chosen, parse_body(await request.body(), kind)


Context = Annotated[AppContext, Depends(_context)]
JsonKind = Annotated[str, accepts(V1_JSON, JSON)]
