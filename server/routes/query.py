"""Queries and PRINT: POST /query-stream and /query, and the end of a push query: /close-query.

Source: ksqlDB developer guide, REST API, endpoints /query-stream, /query and /close-query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request, Response

from ksql.base.errors import KsqlError
from ksql.query.results import ResultStream, TextStream
from server.context import Door, door_of
from server.errors import NotSupportedHere
from server.negotiate import negotiate
from server.rows import FORMS_OF_QUERY, FORMS_OF_QUERY_STREAM, Form
from server.streaming import rows_response, text_response
from server.wire import CloseQueryRequest, KsqlRequest, QueryStreamRequest, read_body

router = APIRouter()
Forms = Mapping[str, Callable[[ResultStream], Form]]


class NoSuchQuery(KsqlError):
    """A query id that no running push query of this server has."""

    def __init__(self, query_id: str) -> None:
        super().__init__(f"No query with id {query_id}")


async def _answer(
    door: Door,
    forms: Forms,
    kind: str,
    text: str,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
) -> Response:
    stream = await door.call(door.service.query, text, properties, variables)
    if isinstance(stream, TextStream):
        return text_response(door, stream)
    return await rows_response(door, stream, forms[kind], kind)


@router.post("/query-stream")
async def query_stream(request: Request) -> Response:
    """One query or PRINT; rows are sent as they come."""
    kind = negotiate(request.headers.get("accept"), tuple(FORMS_OF_QUERY_STREAM))
    body = await read_body(request, QueryStreamRequest)
    return await _answer(
        door_of(request),
        FORMS_OF_QUERY_STREAM,
        kind,
        body.sql,
        body.properties,
        body.session_variables,
    )


@router.post("/query")
async def query(request: Request) -> Response:
    """The same with the older body and the older default form."""
    kind = negotiate(request.headers.get("accept"), tuple(FORMS_OF_QUERY))
    body = await read_body(request, KsqlRequest)
    return await _answer(
        door_of(request),
        FORMS_OF_QUERY,
        kind,
        body.ksql,
        body.streams_properties,
        body.session_variables,
    )


@router.post("/close-query")
async def close_query(request: Request) -> Response:
    """End a push query of this server, whoever started it."""
    door = door_of(request)
    body = await read_body(request, CloseQueryRequest)
    if not await door.call(door.service.close_query, body.query_id):
        raise NoSuchQuery(body.query_id)
    return Response()


@router.get("/ws/query")
async def websocket_query() -> Response:
    """Refused by name rather than as an unknown path."""
    raise NotSupportedHere("a query over a websocket (/ws/query)")
