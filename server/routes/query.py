"""Queries and PRINT: POST /query-stream and /query, and the end of a push query: /close-query.

Source: ksqlDB developer guide, REST API, endpoints /query-stream, /query and /close-query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from ksql.base.errors import KsqlError
from ksql.query.results import ResultStream, TextStream
from server.asked import TheDoor, accepts, body_of
from server.context import Door
from server.errors import NotSupportedHere
from server.rows import FORMS_OF_QUERY, FORMS_OF_QUERY_STREAM, Form
from server.streaming import rows_response, text_response
from server.wire import Body, KsqlRequest, Texts

router = APIRouter()
Forms = Mapping[str, Callable[[ResultStream], Form]]
QueryStreamKind = Annotated[str, accepts(*FORMS_OF_QUERY_STREAM)]
QueryKind = Annotated[str, accepts(*FORMS_OF_QUERY)]


class QueryStreamRequest(Body):
    """The body of /query-stream."""

    sql: str
    properties: Texts = Field(default={})
    session_variables: Texts = Field(default={}, alias="sessionVariables")


class CloseQueryRequest(Body):
    """The body of /close-query."""

    query_id: str = Field(alias="queryId")


QueryStream = Annotated[QueryStreamRequest, body_of(QueryStreamRequest)]
Query = Annotated[KsqlRequest, body_of(KsqlRequest)]
Closing = Annotated[CloseQueryRequest, body_of(CloseQueryRequest)]


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
async def query_stream(kind: QueryStreamKind, body: QueryStream, door: TheDoor) -> Response:
    """Run one query or PRINT; rows are sent as they come."""
    return await _answer(
        door,
        FORMS_OF_QUERY_STREAM,
        kind,
        body.sql,
        body.properties,
        body.session_variables,
    )


@router.post("/query")
async def query(kind: QueryKind, body: Query, door: TheDoor) -> Response:
    """Do the same with the older body and the older default form."""
    return await _answer(
        door,
        FORMS_OF_QUERY,
        kind,
        body.ksql,
        body.streams_properties,
        body.session_variables,
    )


@router.post("/close-query")
async def close_query(body: Closing, door: TheDoor) -> Response:
    """End a push query of this server, started by any client."""
    if not await door.call(door.service.close_query, body.query_id):
        raise NoSuchQuery(body.query_id)
    return Response()


@router.get("/ws/query")
async def websocket_query() -> Response:
    """Refused by name rather than as an unknown path."""
    raise NotSupportedHere("a query over a websocket (/ws/query)")
