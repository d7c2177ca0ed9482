"""An error's class decides its status and body; nothing else ever reaches a client.

Source: ksqlDB developer guide, REST API, errors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from ksql.control.statements import Entity, RequestFailed, masked
from ksql.core import KsqlError, StatementError, TooManyRequests, excerpt
from server.wire import JSON, BadRequest, to_wire

log = logging.getLogger(__name__)

BAD_REQUEST, BAD_STATEMENT = KsqlError.code, StatementError.code
SERVER_ERROR = 50000
LONGEST_MESSAGE = 20_000
LONGEST_ECHO = 4_000
LONGEST_ECHOES, SHORTEST_ECHO = 100_000, 200
"""Of all statements together that were carried out before the one that failed."""
DEFECT = "the server failed on its own account; see its log"


class ShuttingDown(KsqlError):
    """The server is about to end."""

    code = 50303

    def __init__(self) -> None:
        super().__init__("the server is shutting down")


class ClusterTerminated(KsqlError):
    """The cluster was torn down; this server answers no more."""

    code = 50304

    def __init__(self) -> None:
        super().__init__("the cluster has been terminated")


def body_of(error: Exception) -> dict[str, Any]:
    """Return the JSON object that describes an error to a client."""
    match error:
        case RequestFailed(error=TooManyRequests() as limit, entities=()):
            return _generic(limit.code, limit.text())
        case RequestFailed():
            text = error.statement_text or getattr(error.error, "statement", "")
            code = BAD_STATEMENT if error.error.code == BAD_REQUEST and text else error.error.code
            if text or code == BAD_STATEMENT:
                return _statement_error(code, error.error.text(), text, error.entities)
            return _generic(code, error.error.text())
        case StatementError():
            return _statement_error(error.code, error.text(), error.statement, ())
        case KsqlError():
            return _generic(error.code, error.text())
        case _:
            return _generic(SERVER_ERROR, DEFECT)


def _shortened(message: str) -> str:
    """Return a message whose middle is left out if it is beyond reading.

    The hint is at its end.
    """
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = LONGEST_MESSAGE // 2
    left_out = len(message) - 2 * half
    return f"{message[:half]}... ({left_out} more characters) ...{message[-half:]}"


def _generic(code: int, message: str) -> dict[str, Any]:
    return {"@type": "generic_error", "error_code": code, "message": _shortened(message)}


def _statement_error(
    code: int, message: str, text: str, entities: tuple[Entity, ...]
) -> dict[str, Any]:
    return {
        "@type": "statement_error",
        "error_code": code,
        "message": _shortened(message),
        "statementText": _echo(text, LONGEST_ECHO),
        "entities": [*_done(entities)],
    }


def _echo(text: str, longest: int) -> str:
    """Return the begin of a request's text, without secrets, and how much was left out."""
    return masked(text[:longest]) + excerpt(text, longest)[longest:]


def _done(entities: tuple[Entity, ...]) -> Iterator[Any]:
    """Yield what a refused request has done before; its texts are echoes, too."""
    longest = max(SHORTEST_ECHO, min(LONGEST_ECHO, LONGEST_ECHOES // max(len(entities), 1)))
    for entity in entities:
        form: Any = to_wire(entity)
        yield form | {"statementText": _echo(entity.statement_text, longest)}


def streamed_body(error: Exception) -> dict[str, Any]:
    """Return the same for an error in the middle of a stream, where no handler can log it."""
    if not isinstance(error, KsqlError | RequestFailed):
        log.error("query failed unexpectedly", exc_info=error)
    return body_of(error)


def response_of(error: Exception) -> Response:
    """Return the answer to a request that failed; its status is the code's first three digits."""
    body = body_of(error)
    return Response(orjson.dumps(body), status_code=body["error_code"] // 100, media_type=JSON)


async def _failure(_request: Request, error: Exception) -> Response:
    return response_of(error)


async def _parameter(_request: Request, error: Exception) -> Response:
    """Refuse a request by the first of its parameters that is missing or wrong."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for nothing else
    problem = error.errors()[0]
    return response_of(BadRequest(f"the parameter '{problem['loc'][-1]}': {problem['msg']}"))


async def _plain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    return plain_response(error)


def plain_response(error: HTTPException) -> Response:
    """Return HTTP's own words, as plain text: for paths and media types that are not there."""
    return PlainTextResponse(
        HTTPStatus(error.status_code).phrase, status_code=error.status_code, headers=error.headers
    )


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a path that is not there, for websockets too."""
    if scope["type"] != "websocket":
        raise HTTPException(404)
    there_is_none = PlainTextResponse(HTTPStatus.NOT_FOUND.phrase, HTTPStatus.NOT_FOUND)
    await WebSocket(scope, receive, send).send_denial_response(there_is_none)


def install(app: FastAPI) -> None:
    """Give every kind of error its handler."""
    app.router.default = _nowhere
    app.add_exception_handler(RequestFailed, _failure)
    app.add_exception_handler(KsqlError, _failure)
    app.add_exception_handler(RequestValidationError, _parameter)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _failure)  # uvicorn's log has the traceback
