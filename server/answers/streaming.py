"""A running query as an HTTP response: it ends with the query, or ends it when the client leaves.

The rows are waited for in a thread. Starlette watches for the client's disconnect while rows are
sent, and cancels the sending; ``QueryResponse`` closes the query in every case.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ksql.core import KsqlError
from ksql.serving import (
    ResultRow,
    ResultStream,
    TextStream,
    freshness_of,
    is_counted,
    is_dated,
    token_of,
)
from server.answers.pieces import Pieces, in_turns
from server.answers.row_encoders import AnswerForm, dumps, replicas_form
from server.context import AppContext, BufferedResult
from server.errors import ShuttingDown, streamed_body
from server.wire import DELIMITED

PLAIN = "text/plain; charset=utf-8"


class QueryResponse(StreamingResponse):
    """A response that closes its query however it ends."""

    def __init__(
        self,
        context: AppContext,
        stream: ResultStream | TextStream,
        content: AsyncIterator[bytes],
        media_type: str,
    ) -> None:
        super().__init__(content, media_type=media_type)
        self._context = context
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the query ends or the client leaves."""
        scope.setdefault("state", {})["query_id"] = self._stream.query_id
        if scope.get("http_version") == "2" and self.media_type == DELIMITED:
            self.body_iterator = _line_by_line(self.body_iterator)
        self.body_iterator = in_turns(self.body_iterator)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._context.closed(self._stream)


def buffered_response(
    buffered: BufferedResult,
    form_of: Callable[[ResultStream], AnswerForm],
    media_type: str,
    scope: Scope,
) -> Response:
    """Return the rows of a query that has ended, in one piece where the protocol allows it."""
    scope.setdefault("state", {})["query_id"] = buffered.query_id
    form = form_of(buffered)
    body = form.header() + form.rows(buffered.rows) + form.footer(buffered.final_message)
    buffered.sent(len(body))
    return _in_one_piece(body, media_type, scope)


async def brief_response(
    context: AppContext,
    stream: ResultStream,
    form_of: Callable[[ResultStream], AnswerForm],
    media_type: str,
    scope: Scope,
) -> Response:
    """Return the few rows of a query in one piece, waited for in one step of one thread.

    Raises: what the query and the form raise, and ShuttingDown.
    """
    context.opened(stream, ends_soon=True)
    try:
        form = form_of(stream)
        body = await context.wait(lambda: _taken(stream, form))
        if context.has_cut(stream):
            raise ShuttingDown
    except BaseException:
        context.closed(stream)
        raise
    context.ended(stream)
    scope.setdefault("state", {})["query_id"] = stream.query_id
    counter(stream)(len(body))
    return _in_one_piece(body, media_type, scope)


def _taken(stream: ResultStream, form: AnswerForm) -> bytes:
    """Read a query to its end, and end it; an error after its rows comes last."""
    try:
        rows = form.rows([row for batch in stream.batches() for row in batch])
        try:
            tail = (
                form.consistency(replicas_form(freshness_of(stream))) if is_dated(stream) else b""
            )
            if (issue := token_of(stream)) is not None:
                tail += form.token(issue().text())
        except KsqlError as error:
            return form.header() + rows + form.error(streamed_body(error)) + form.footer(None)
        return form.header() + rows + tail + form.footer(stream.final_message)
    finally:
        stream.close()


def _in_one_piece(body: bytes, media_type: str, scope: Scope) -> Response:
    """Return an answer that is there already; over HTTP/2 it has a frame for each line."""
    if scope.get("http_version") == "2" and media_type == DELIMITED:
        return StreamingResponse(_line_by_line(_pieces(body)), media_type=media_type)
    return Response(body, media_type=media_type)


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def counter(stream: ResultStream) -> Callable[[int], None]:
    """Return what is called with the size of each piece of a query's answer."""
    return stream.sent if is_counted(stream) else _uncounted


def _uncounted(_size_bytes: int) -> None:
    """Count nothing: nothing limits it."""


async def _line_by_line(chunks: AsyncIterable[Any]) -> AsyncIterator[bytes]:
    """Return a frame for each line, as ksqlDB sends them: clients take each for one JSON value."""
    async for chunk in chunks:
        for line in chunk.splitlines(keepends=True):
            yield line


async def rows_response(
    context: AppContext,
    stream: ResultStream,
    form_of: Callable[[ResultStream], AnswerForm],
    media_type: str,
    left: Callable[[], Awaitable[bool]],
) -> QueryResponse:
    """Return a query's rows in that form.

    A pull query's first rows are waited for here, so that what fails before them fails with a
    status. ``left`` says whether the client is still there to wait for them.
    Raises: what the form raises for columns that it cannot write.
    """
    context.opened(stream, ends_soon=stream.kind == "pull")
    batches = stream.batches()
    first: list[ResultRow] | None = []
    try:
        form = form_of(stream)
        if stream.kind == "pull":
            first = await _first(context, batches, left)
    except BaseException:
        context.closed(stream)
        raise
    return QueryResponse(
        context, stream, _row_chunks(context, stream, form, first, batches), media_type
    )


async def _first(
    context: AppContext, batches: Iterator[list[ResultRow]], left: Callable[[], Awaitable[bool]]
) -> list[ResultRow] | None:
    """Return the first rows; None at the end, also if the client does not wait for them."""
    while (batch := await context.wait(lambda: next(batches, None))) == []:
        if await left():
            return None
    return batch


async def _row_chunks(
    context: AppContext,
    stream: ResultStream,
    form: AnswerForm,
    batch: list[ResultRow] | None,
    batches: Iterator[list[ResultRow]],
) -> AsyncIterator[bytes]:
    sent, pieces = counter(stream), Pieces(form.rows)
    try:
        for chunk in pieces.of(batch or (), form.header()):
            sent(len(chunk))
            yield chunk
        while batch is not None:
            batch = await context.wait(lambda: next(batches, None))
            for chunk in pieces.of(batch or ()):
                sent(len(chunk))
                yield chunk
        if context.has_cut(stream):
            raise ShuttingDown
        if is_dated(stream):
            freshness = await context.wait(lambda: freshness_of(stream))
            yield form.consistency(replicas_form(freshness))
        if (issue := token_of(stream)) is not None:
            token = await context.wait(issue)
            yield form.token(token.text())
    except Exception as error:  # noqa: BLE001 - the status is sent: the stream must report it
        yield form.error(streamed_body(error))
        yield form.footer(None)
        return
    yield form.footer(stream.final_message)


def text_response(context: AppContext, stream: TextStream) -> QueryResponse:
    """Answer with PRINT's lines as plain text; an error on the way is a last line of JSON."""
    context.opened(stream)
    return QueryResponse(context, stream, _text_chunks(context, stream), PLAIN)


async def _text_chunks(context: AppContext, stream: TextStream) -> AsyncIterator[bytes]:
    try:
        lines = stream.lines()
        while (batch := await context.wait(lambda: next(lines, None))) is not None:
            if batch:
                yield "".join(f"{line}\n" for line in batch).encode(errors="replace")
        if context.has_cut(stream):
            raise ShuttingDown
    except Exception as error:  # noqa: BLE001 - see _row_chunks
        yield dumps(streamed_body(error)) + b"\n"
