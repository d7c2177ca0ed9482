"""Queries and PRINT: POST /query-stream and /query, and the end of a push query: /close-query.

Source: ksqlDB developer guide, REST API, endpoints /query-stream, /query and /close-query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ksql.cluster.replicas import Caller
from ksql.core import KsqlError, token
from ksql.serving import ResultStream, is_brief
from server.answers.row_encoders import (
    FORMS_OF_QUERY,
    FORMS_OF_QUERY_STREAM,
    AnswerForm,
    StreamedRows,
    Writer,
)
from server.answers.streaming import (
    PLAIN,
    brief_response,
    buffered_response,
    rows_response,
    text_response,
)
from server.api import answers, errors, takes
from server.context import BufferedResult
from server.dependencies import Context, accepted_body, body_of, context_of
from server.wire import DELIMITED, INFO, JSON, V1_JSON, V1_PROTOBUF, Body, KsqlRequest, Texts, is_on

router = APIRouter(tags=["queries"])
DEBUG: Final = "request.ksql.debug.request"


class QueryStreamRequest(Body):
    """The body of /query-stream."""

    sql: str
    properties: Texts = Field(default={})
    session_variables: Texts = Field(default={}, alias="sessionVariables")
    request_properties: Texts = Field(default={}, alias="requestProperties")


class CloseQueryRequest(Body):
    """The body of /close-query."""

    query_id: str = Field(alias="queryId")


class Header(Body):
    """The columns of the rows that follow."""

    query_id: str | None = Field(alias="queryId")
    column_names: list[str] = Field(alias="columnNames")
    column_types: list[str] = Field(alias="columnTypes")
    notes: list[str] | None = None


class StreamedHeader(Body):
    """The columns as one text; ``protoSchema`` describes the messages of Protobuf rows."""

    query_id: str | None = Field(alias="queryId")
    schema_text: str = Field(alias="schema")
    proto_schema: str | None = Field(default=None, alias="protoSchema")
    notes: list[str] | None = None


class StreamedValues(Body):
    """A row: values, or a message in Base64; a tombstone has its key only."""

    columns: list[Any] | None = None
    proto_bytes: str | None = Field(default=None, alias="protobufBytes")
    tombstone: bool | None = None


class StreamedRow(Body):
    """One element of an answer: a header, a row, an error or the reason of the end."""

    header: StreamedHeader | None = None
    row: StreamedValues | None = None
    source_host: dict[str, Any] | None = Field(default=None, alias="sourceHost")
    error_message: dict[str, Any] | None = Field(default=None, alias="errorMessage")
    final_message: str | None = Field(default=None, alias="finalMessage")
    consistency_token: dict[str, str] | None = Field(default=None, alias="consistencyToken")
    consistency_info: list[dict[str, Any]] | None = Field(default=None, alias="consistencyInfo")


Closing = Annotated[CloseQueryRequest, body_of(CloseQueryRequest)]


class NoSuchQuery(KsqlError):
    """A query id that no running push query of this server has."""

    def __init__(self, query_id: str) -> None:
        super().__init__(f"No query with id {query_id}")


def _row_answers(json: object) -> dict[int | str, dict[str, Any]]:
    """Describe the forms of rows; ``json`` is that of application/json."""
    responses = answers(json, JSON) | errors()
    streamed = answers(list[StreamedRow], V1_JSON, V1_PROTOBUF)[200]["content"]
    lines = {DELIMITED: {"schema": {"type": "string"}}, PLAIN: {"schema": {"type": "string"}}}
    responses[200]["content"] |= streamed | lines
    return responses


async def _answer(
    request: Request,
    form: Writer,
    kind: str,
    text: str,
    properties: Mapping[str, Mapping[str, str]],
) -> Response:
    context = context_of(request)
    writer: Callable[[ResultStream], AnswerForm] = form
    if is_on(properties["request"], DEBUG) and issubclass(form, StreamedRows):
        writer = partial(form, source_host=context.service.host)
    stream = await context.query(
        text,
        properties["session"],
        properties["variables"],
        tombstones=form.tombstones,
        left=request.is_disconnected,
        caller=Caller(
            credentials=request.headers.get("authorization", ""),
            info=is_on(properties["request"], INFO),
            token=token.requested_token(properties["request"], context.service),
        ),
    )
    if isinstance(stream, BufferedResult):
        return buffered_response(stream, writer, kind, request.scope)
    if stream.kind == "print":
        return text_response(context, stream)
    if is_brief(stream):
        return await brief_response(context, stream, writer, kind, request.scope)
    return await rows_response(context, stream, writer, kind, request.is_disconnected)


@router.post(
    "/query-stream",
    responses=_row_answers(list[Header | list[Any]]),
    openapi_extra=takes(QueryStreamRequest),
)
async def query_stream(request: Request) -> Response:
    """Run one query or PRINT; rows are sent as they come."""
    kind, body = await accepted_body(request, FORMS_OF_QUERY_STREAM, QueryStreamRequest)
    given = {
        "session": body.properties,
        "variables": body.session_variables,
        "request": body.request_properties,
    }
    return await _answer(request, FORMS_OF_QUERY_STREAM[kind], kind, body.sql, given)


@router.post("/query", responses=_row_answers(list[StreamedRow]), openapi_extra=takes(KsqlRequest))
async def query(request: Request) -> Response:
    """Do the same with the older body and the older default form."""
    kind, body = await accepted_body(request, FORMS_OF_QUERY, KsqlRequest)
    given = {
        "session": body.streams_properties,
        "variables": body.session_variables,
        "request": body.request_properties,
    }
    await context_of(request).caught_up(body.command_sequence_number, request.is_disconnected)
    return await _answer(request, FORMS_OF_QUERY[kind], kind, body.ksql, given)


@router.post(
    "/close-query",
    responses={200: {"description": "the query has been ended"}, **errors()},
    openapi_extra=takes(CloseQueryRequest),
)
async def close_query(body: Closing, context: Context) -> Response:
    """End a push query of this server, started by any client."""
    if not await context.call(context.service.close_query, body.query_id):
        raise NoSuchQuery(body.query_id)
    return Response()


OFTEN: Final = {"/query-stream": query_stream, "/query": query}
"""The paths that are asked most, and what answers them."""
