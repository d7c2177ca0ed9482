"""Answers in the coding that a client offers to decode: gzip or deflate.

Starlette compresses; each piece of a streamed answer is flushed, so that a row is there when it was
sent.
Source: RFC 9110, section 12.5.3.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from starlette.middleware.gzip import GZipResponder, IdentityResponder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_LEVEL: Final = 4
_QUALITY: Final = re.compile(r"[01](\.[0-9]*)?")
_LEAST_BYTES: Final = 500  # of an answer that is whole; a shorter one fits into a packet anyway


class Compression:
    """An application whose answers are compressed for clients that ask for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with another way to send if it is one of HTTP."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        offered = [v.decode("latin-1") for k, v in scope["headers"] if k == b"accept-encoding"]
        responder: ASGIApp
        match coding(",".join(offered)):
            case "gzip":
                responder = GZipResponder(self._app, _LEAST_BYTES, _LEVEL)
            case "deflate":
                responder = _Deflate(self._app, _LEAST_BYTES, _LEVEL)
            case None if scope["method"] == "POST":  # kept by no cache, so nothing to say of it
                responder = self._app
            case _:
                responder = IdentityResponder(self._app, _LEAST_BYTES)
        await responder(scope, receive, send)


class _Deflate(GZipResponder):
    """The same data in zlib's frame, which is what HTTP calls deflate."""

    content_encoding = "deflate"

    @property
    def compressor(self) -> zlib._Compress:
        """The state of the answer."""
        if self._compressor is None:
            self._compressor = zlib.compressobj(self.compresslevel)
        return self._compressor


@lru_cache(maxsize=256)
def coding(accepted: str) -> str | None:
    """Return the coding that the header wants most, of those that there are; None for none."""
    wishes: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        wishes[name] = float(quality) if _QUALITY.fullmatch(quality) else 0.0
    other = wishes.get("*", 0.0)
    gzip, deflate = wishes.get("gzip", other), wishes.get("deflate", other)
    if max(gzip, deflate) <= 0:
        return None
    return "gzip" if gzip >= deflate else "deflate"
