"""The HTTP application: routes and error handlers in one list; a server inside a process.

The demo and the test files have a service over HTTP inside a process that does more than serve.
"""

from __future__ import annotations

import contextlib
import logging
from importlib import metadata
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Response

from ksql.http import Access, Compression, HttpServer, guard
from server import api, console, errors
from server.context import AppContext
from server.fast_routes import FastRoutes
from server.headers import Header, Headers
from server.middleware import RequestCounts, Tracing
from server.routes import (
    cluster,
    health,
    info,
    inserts,
    ksql,
    metrics,
    query,
    stores,
    topics,
    upgrades,
    websocket,
)
from server.routes import headless as disabled_routes
from server.signin import AUDIT_LOG, InternalAuth, SignIn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.core import ServerSecret
    from ksql.http import Listening
    from server.pulse import Pulse
    from server.service import Service
    from server.users import Users


FOR_STATEMENTS = (ksql.router, query.router, websocket.router, inserts.router)
ROUTERS = (
    *FOR_STATEMENTS,
    ksql.status_router,
    upgrades.router,
    info.router,
    health.router,
    metrics.router,
    cluster.router,
    stores.router,
    topics.router,
)


WEBSOCKET_S = 3600.0


def create_app(
    service: Service | None = None,
    *,
    context: AppContext | None = None,
    access: Access | None = None,
    users: Users | None = None,
    secret: ServerSecret | None = None,
    websocket_s: float = WEBSOCKET_S,
    headless: bool = False,
    with_console: bool = True,
    headers: tuple[Header, ...] = (),
    audited: bool = False,
) -> FastAPI:
    """Return the application over a service that runs already, or over a door that opens later.

    ``access`` names the origins that may ask (if None, no foreign web pages), and ``users`` the
    users (if None, all). ``secret`` is how servers know one another, and ``websocket_s`` how long a
    websocket may live. A ``headless`` server takes no statements, queries and rows. All answers
    have the ``headers``. ``audited``: each statement is logged with who has sent it.
    ``with_console``: browsers get the console.

    Raises: ValueError when neither is given.
    """
    if context is None:
        if service is None:
            raise ValueError("a service or a context is needed")
        context = AppContext(service)
    app = _application(context, api.OPENAPI)
    app.state.websocket_s = websocket_s
    access = access or Access()
    app.state.max_line_bytes = access.max_body_bytes
    for_statements = {} if headless else query.OFTEN
    app.add_middleware(FastRoutes, answers=for_statements | stores.OFTEN | cluster.OFTEN)
    app.add_middleware(Compression)
    if audited:
        AUDIT_LOG.setLevel(logging.INFO)  # whatever else is logged
    if users is not None or audited:
        app.add_middleware(SignIn, users=users, audited=audited)
    if secret is not None:
        app.add_middleware(InternalAuth, secret=secret, own=lambda: context.own_host)
    _add_outer_layers(app, access, headers, _plain_paths())
    _add_routes(app, headless=headless)
    if with_console:
        console.install(app)
    api.describe(app, metadata.version("ksql-spark"), secured=users is not None)
    return app


SCRAPED: Final = frozenset(("/metrics", "/livez", "/readyz"))
"""What the listeners of metrics answer, to everybody who reaches them."""


def create_metrics_app(
    context: AppContext,
    access: Access,
    headers: tuple[Header, ...] = (),
    pulse: Pulse | None = None,
) -> FastAPI:
    """Return the application of ``metrics.listeners``: it knows ``SCRAPED`` and no users.

    ``pulse`` is that of the event loop for which /livez answers, if another one runs this.
    """
    app = _application(context, openapi_url=None)
    app.add_middleware(Compression)
    _add_outer_layers(app, access, headers, SCRAPED)
    app.state.pulse = pulse
    app.add_api_route("/metrics", metrics.own_metrics)
    app.add_api_route("/livez", health.livez_beside)
    app.add_api_route("/readyz", health.readyz)
    return app


def _application(context: AppContext, openapi_url: str | None) -> FastAPI:
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=openapi_url,
        redirect_slashes=False,
        default_response_class=Response,
    )
    app.state.context = context
    errors.install(app)
    return app


def _add_outer_layers(
    app: FastAPI, access: Access, headers: tuple[Header, ...], paths: frozenset[str]
) -> None:
    """Add what is around all other layers; ``paths`` are those that requests are counted by."""
    guard(app, access)
    if headers:
        app.add_middleware(Headers, headers=headers)
    app.add_middleware(RequestCounts, counts=app.state.context.requests, paths=paths)
    app.add_middleware(Tracing)


def _add_routes(app: FastAPI, *, headless: bool) -> None:
    for router in ROUTERS:
        if not headless or router not in FOR_STATEMENTS:
            app.include_router(router)
    if headless:
        disabled_routes.install(app, FOR_STATEMENTS)


def _plain_paths() -> frozenset[str]:
    """Return the paths that are routes as they are."""
    paths = (getattr(route, "path", "{}") for router in ROUTERS for route in router.routes)
    return frozenset(path for path in paths if "{" not in path)


_GRACE_S = 2


@contextlib.contextmanager
def behind_http(service: Service, sockets: Sequence[Listening]) -> Iterator[AppContext]:
    """Answer on these sockets for a running service; the caller starts and stops both."""
    context = AppContext(service)
    http = HttpServer(create_app(context=context), sockets, _GRACE_S)
    http.start("http")
    try:
        yield context
    finally:
        context.shut()
        http.stop()
        context.release()
