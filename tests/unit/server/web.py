"""Calls of the application, in memory or over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
from fastapi import FastAPI

from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from server.app import create_app
from tests.unit.server.fakes import FakeService

GRACE_S = 5


def ask(
    service: FakeService, method: str, path: str, *, app: FastAPI | None = None, **kwargs: Any
) -> httpx.Response:
    """One request to the application, without a socket."""
    app = app or create_app(service)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **kwargs)

    try:
        return asyncio.run(send())
    finally:
        app.state.context.release()


@contextlib.contextmanager
def serving(service: FakeService) -> Iterator[tuple[str, FastAPI]]:
    """The application on a real socket; gives its URL."""
    app = create_app(service)
    with listen("127.0.0.1", 0) as sock:
        server = HttpServer(app, [sock], GRACE_S)
        server.start("http")
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}", app
        finally:
            app.state.context.shut()
            server.stop()
            app.state.context.release()
