"""Rows for a stream, acknowledged one by one while they come: POST /inserts-stream.

Source: ksqlDB developer guide, REST API, endpoint /inserts-stream.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from server.asked import TheDoor, accepts
from server.inserts import AckForm, InsertsResponse, lines
from server.wire import DELIMITED, JSON, Body, Texts, parse_body

router = APIRouter()
AckKind = Annotated[str, accepts(DELIMITED, JSON)]


class InsertsRequest(Body):
    """The first line of /inserts-stream."""

    target: str
    properties: Texts = Field(default={})


@router.post("/inserts-stream")
async def inserts_stream(request: Request, kind: AckKind, door: TheDoor) -> Response:
    """Write rows: the first line names the stream, each line after it is a row."""
    service = door.service
    pieces = lines(request.stream(), request.app.state.max_line_bytes)
    first = await anext(pieces, [b""])
    body = parse_body(first[0], InsertsRequest)
    writer = await door.call(service.inserts, body.target, body.properties)
    return InsertsResponse(door, writer, first[1:], pieces, AckForm.of(kind), kind)
