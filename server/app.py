"""The HTTP application: its routes and error handlers, as one visible list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from ksql.web.access import Access
from ksql.web.guarded import guard
from server import errors
from server.context import Door
from server.routes import cluster, health, info, inserts, ksql, query, status

if TYPE_CHECKING:
    from ksql.app.service import KsqlService

ROUTERS = (
    ksql.router,
    query.router,
    inserts.router,
    status.router,
    info.router,
    health.router,
    cluster.router,
)


def create_app(
    service: KsqlService | None = None, *, door: Door | None = None, access: Access | None = None
) -> FastAPI:
    """Return the application over a service that runs already, or over a door that opens later.

    ``access`` says who may ask; without it, clients that are no foreign web pages.

    Raises: ValueError when neither is given.
    """
    if door is None:
        if service is None:
            raise ValueError("a service or a door is needed")
        door = Door(service)
    app = FastAPI(
        title="ksql", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.state.door = door
    errors.install(app)
    access = access or Access()
    app.state.max_line_bytes = access.max_body_bytes
    guard(app, access)
    for router in ROUTERS:
        app.include_router(router)
    return app
