"""Rows for a stream, acknowledged one by one while they come: POST /inserts-stream.

Source: ksqlDB developer guide, REST API, endpoint /inserts-stream.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ksql.core.token import requested_token
from server.api import answers, takes
from server.dependencies import Context, accepts
from server.inserts import AckForm, InsertsResponse, lines
from server.wire import DELIMITED, JSON, Body, Texts, parse_body

router = APIRouter(tags=["rows"])
AckKind = Annotated[str, accepts(DELIMITED, JSON)]


class InsertsRequest(Body):
    """The first line of /inserts-stream."""

    target: str
    properties: Texts = Field(default={})
    request_properties: Texts = Field(default={}, alias="requestProperties")


class Acknowledgement(Body):
    """The outcome of one row; ``error_code`` and ``message`` say why it was not written.

    ``consistencyToken``, where the request is about tokens, names all rows written so far.
    """

    status: Literal["ok", "error"]
    seq: int
    error_code: int | None = None
    message: str | None = None
    consistency_token: str | None = Field(default=None, alias="consistencyToken")


_ACKS = answers(list[Acknowledgement], JSON)
_ACKS[200]["content"][DELIMITED] = {"schema": {"type": "string"}}


def _lines() -> dict[str, Any]:
    """Describe the body: lines of JSON, the first of them an InsertsRequest."""
    body = takes(InsertsRequest)
    body["requestBody"]["description"] = "This object on the first line, then a row per line."
    return body


@router.post("/inserts-stream", responses=_ACKS, openapi_extra=_lines())
async def inserts_stream(request: Request, kind: AckKind, context: Context) -> Response:
    """Write rows: the first line names the stream, each line after it is a row."""
    service = context.service
    pieces = lines(request.stream(), request.app.state.max_line_bytes)
    first = await anext(pieces, [b""])
    body = parse_body(first[0], InsertsRequest)
    token = requested_token(body.request_properties, service)
    writer = await context.call(service.inserts, body.target, body.properties)
    return InsertsResponse(context, writer, first[1:], pieces, AckForm.of(kind), kind, token)
