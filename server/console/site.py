"""Serves the console's page and files at /console; nothing of it is loaded from elsewhere.

The page is a client of the REST API and of nothing else. Its files hold no data.

Source: docs/console.md.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


ENABLED: Final = "ksql.console.enable"
PATH: Final = "/console"
_PAGE: Final = "index.html"
_KINDS: Final = {".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
"""Media types that do not depend on the machine's own list."""
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""What a browser must know of each file; ``no-cache``: it asks each time whether it has changed."""


class File(NamedTuple):
    """A file of the console, and compressed; ``tag`` is its content's digest as an entity tag."""

    content: bytes
    zipped: bytes
    kind: str
    tag: str


@lru_cache(maxsize=1)
def files() -> dict[str, File]:
    """Return the files of the console by their path below it."""
    root = resources.files("server.console").joinpath("static")
    return dict(_below(root, ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, File]]:
    below: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        name = path + entry.name
        if entry.is_dir():
            below += _below(entry, name + "/")
        else:
            below.append((name, _file(name, entry.read_bytes())))
    return below


def _file(name: str, content: bytes) -> File:
    suffix = name[name.rfind(".") :]
    kind = _KINDS.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    zipped = gzip.compress(content, mtime=0)
    return File(content, zipped, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _answer(request: Request, name: str) -> Response:
    file = files().get(name)
    if file is None:
        raise HTTPException(404)
    headers = HEADERS | {"etag": file.tag}
    known = request.headers.get("if-none-match", "")
    if file.tag in {tag.strip().removeprefix("W/") for tag in known.split(",")}:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(file.zipped, media_type=file.kind, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


def install(app: FastAPI) -> None:
    """Answer /console and what lies below it."""
    router = APIRouter(include_in_schema=False)

    @router.api_route(PATH, methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        return _answer(request, _PAGE)

    @router.api_route(PATH + "/{name:path}", methods=["GET", "HEAD"])
    async def file(request: Request, name: str) -> Response:
        return _answer(request, name or _PAGE)

    app.include_router(router)
