"""Requests whose target is a whole URL, as proxies and some clients send them.

Source: RFC 9112, section 3.2.2: a server accepts them, and the URL's host counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_SCHEMES = (b"http://", b"https://")


class WholeTargets:
    """An application that sees the path of such a target, and its host as the header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        target = scope.get("raw_path", b"")
        if scope["type"] == "http" and target.lower().startswith(_SCHEMES):
            scope = {**scope, **_parts(target, scope["headers"])}
        await self._app(scope, receive, send)


def _parts(target: bytes, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    authority, slash, rest = target.partition(b"://")[2].partition(b"/")
    path = slash + rest or b"/"
    others = [(name, value) for name, value in headers if name != b"host"]
    return {
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "headers": [(b"host", authority), *others],
    }
