"""The page of the API: /openapi.json, and /docs to read it with and try it out.

The page loads nothing from elsewhere: a foreign script could send statements.
"""

from __future__ import annotations

from typing import Any, Final

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from server.api import COMPONENTS

OPENAPI: Final = "/openapi.json"
DOCS: Final = "/docs"
_FILES: Final = "/docs-files"
_ABOUT: Final = """
ksqlDB's REST interface.

The body of a request is JSON, whatever its content type says; unknown fields are ignored. Rows are
streamed while they come; the form is chosen with `Accept`. Besides these routes there is the
websocket `/ws/query`, whose parameter `request` is a body of `/query`.
"""


def describe(app: FastAPI, version: str, *, secured: bool) -> None:
    """Serve the description of all routes that the application has by then.

    ``secured``: clients must name a user.
    """

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title="ksql", version=version, description=_ABOUT, routes=app.routes
            )
            components = document.setdefault("components", {})
            components.setdefault("schemas", {}).update(sorted(COMPONENTS.items()))
            if secured:
                components["securitySchemes"] = {"user": {"type": "http", "scheme": "basic"}}
                document["security"] = [{"user": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's way to extend it

    @app.get(DOCS, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=OPENAPI,
            title="ksql",
            swagger_js_url=f"{_FILES}/swagger-ui-bundle.js",
            swagger_css_url=f"{_FILES}/swagger-ui.css",
            swagger_favicon_url=f"{_FILES}/favicon.png",
        )

    app.mount(_FILES, StaticFiles(packages=[(fastapi_offline.__name__, "static")]))
