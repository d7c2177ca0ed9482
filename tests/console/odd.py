"""Servers in the test's process: the service in memory, or one made of lists."""

from __future__ import annotations

import contextlib
import gc

from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from server.app import create_app
from server.context import AppContext

GRACE_S = 1


@contextlib.contextmanager
def at(service, *, port=0, tls=None, **options):
    """Answer for a service over HTTP; gives the URL and the application."""
    context = AppContext(service)
    app = create_app(context=context, **options)
    with listen("127.0.0.1", port) as sock:
        http = HttpServer(app, [sock], GRACE_S, tls)
        http.start("http")
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{sock.getsockname()[1]}", app
        finally:
            context.shut()
            http.stop()
            context.release()
            gc.collect()  # the browser's idle connections, whose loop has ended: see the filter
