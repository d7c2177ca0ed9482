"""Serves the embedded registry's REST interface, as Confluent's, in a thread of the service.

Source: Confluent Schema Registry API reference.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ksql.core import REGISTRY_PORT_IN_USE, raise_limit, write_atomically
from ksql.http import Access, Connections, HttpServer, guard, listen, url
from ksql.registry.errors import BadRequest, RegistryError
from ksql.registry.routes import routers
from ksql.registry.wire import MEDIA_TYPE

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ksql.http import Listening
    from ksql.registry.subjects import Subjects


_log = logging.getLogger(__name__)


class _Answer(JSONResponse):
    media_type = MEDIA_TYPE


def create_app(subjects: Subjects, access: Access | None = None) -> FastAPI:
    """Return the interface over a registry; ``access`` says who may ask."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, default_response_class=_Answer)
    for routes in routers(subjects):
        app.include_router(routes)
    app.add_exception_handler(RegistryError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _no_resource)
    app.add_exception_handler(Exception, _defect)
    app.add_middleware(EncodedPaths)
    guard(app, access or Access())
    return app


class EncodedPaths:
    """Routes by the path as it was sent: a subject's name may have an encoded slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].decode("ascii").partition("?")[0]
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


# --- errors


def _error(status: int, code: int, message: str) -> Response:
    return _Answer({"error_code": code, "message": message}, status)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)  # noqa: S101 - registered for nothing else
    return _error(error.status, error.code, error.message)


async def _malformed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for nothing else
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _error(400, 400, f"Malformed JSON: {first.get('ctx', {}).get('error', '')}")
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "extra_forbidden":
        return _error(422, BadRequest.code, f"Unrecognized field: {where}")
    return _error(422, BadRequest.code, f"{where}: {first['msg']}" if where else first["msg"])


async def _no_resource(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    return _error(error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}")


async def _defect(_request: Request, error: Exception) -> Response:
    _log.error("registry_request_failed", exc_info=error)
    return _error(500, 50001, "Error in the schema registry, see its log")


_GRACE_S: Final = 2
_CONNECTIONS: Final = 1_000  # each worker and client keeps one or a few
_SHARE: Final = 8  # of the process's descriptors: REST has half of them, stores and Kafka need some


class RegistryServer:
    """The REST interface of a registry, as long as this process needs it.

    With port 0 it takes the port it had before, if that is free, else any: ``port_file`` remembers.
    """

    def __init__(
        self,
        subjects: Subjects,
        host: str,
        port: int,
        port_file: Path,
        access: Access | None = None,
    ) -> None:
        self._subjects = subjects
        self._access = access
        self._host = host
        self._port = port
        self._port_file = port_file
        self._server: HttpServer | None = None

    def start(self) -> str:
        """Start it; the URL at which clients find it, who may connect at once.

        Raises: REGISTRY_PORT_IN_USE.
        """
        sock = self._bound()
        app = create_app(self._subjects, self._access)
        self._server = HttpServer(app, [sock], _GRACE_S, connections=self._connections())
        port = int(sock.getsockname()[1])
        write_atomically(self._port_file, str(port))
        self._server.start("schema-registry")
        return url(self._host, port)

    def stop(self) -> None:
        """End it, the running requests first; harmless when it does not run."""
        if self._server is not None:
            self._server.stop()
        self._server = None

    @staticmethod
    def _connections() -> Connections:
        most = min(_CONNECTIONS, raise_limit() // _SHARE)
        return Connections(most, most)

    def _bound(self) -> Listening:
        if self._port == 0 and (former := self._former_port()):
            with contextlib.suppress(OSError):
                return listen(self._host, former)
        try:
            return listen(self._host, self._port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise REGISTRY_PORT_IN_USE(host=self._host, port=self._port, reason=reason) from error

    def _former_port(self) -> int:
        try:
            return int(self._port_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0
