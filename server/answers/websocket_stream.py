"""A query over a websocket: a frame with the columns, a frame for each row, and why it ends.

Source: ksqlDB developer guide, REST API, endpoint /ws/query.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from ksql.cluster.replicas import Caller
from ksql.control.statements import FieldInfo
from ksql.core import requested_token
from ksql.serving import ResultStream, TextStream, freshness_of, is_dated, notes_of, token_of
from server.answers.pieces import in_turns
from server.answers.row_encoders import (
    StreamedRows,
    consistency_object,
    dumps,
    final_object,
    replicas_form,
    token_object,
)
from server.answers.streaming import counter
from server.context import AppContext
from server.errors import ShuttingDown, streamed_body
from server.signin import authorization
from server.wire import INFO, KsqlRequest, is_on, to_wire

DONE: Final = 1000
GOING_AWAY: Final = 1001
NOT_ACCEPTED: Final = 1003
SERVER_ERROR: Final = 1011
_LONGEST_REASON: Final = 120  # bytes, of 123 that a frame of control has for it


async def converse(
    websocket: WebSocket, context: AppContext, request: KsqlRequest, longest_s: float
) -> None:
    """Answer on an accepted websocket and close it; ``longest_s`` bounds its life, 0 does not."""
    sending = asyncio.ensure_future(_send_all(websocket, context, request))
    leaving = asyncio.ensure_future(_until_left(websocket))
    both = {sending, leaving}
    try:
        await asyncio.wait(both, timeout=longest_s or None, return_when=asyncio.FIRST_COMPLETED)
        late = not any(task.done() for task in both)
    finally:
        for task in both:
            task.cancel()
        outcomes = await asyncio.gather(*both, return_exceptions=True)
    if late:
        await _close(websocket, GOING_AWAY, f"open for longer than {longest_s:g} s")
    elif isinstance(outcomes[0], Exception) and not isinstance(outcomes[0], WebSocketDisconnect):
        raise outcomes[0]


async def refuse(websocket: WebSocket, error: Exception) -> None:
    """Send what was wrong and close."""
    body = streamed_body(error)
    await websocket.send_text(dumps(body).decode())
    await _close(websocket, _code_of(body), body["message"])


def _code_of(body: dict[str, Any]) -> int:
    if body["error_code"] // 100 < HTTPStatus.INTERNAL_SERVER_ERROR:
        return NOT_ACCEPTED
    return GOING_AWAY if body["error_code"] == ShuttingDown.code else SERVER_ERROR


async def _send_all(websocket: WebSocket, context: AppContext, request: KsqlRequest) -> None:
    try:
        await context.caught_up(request.command_sequence_number, _stays)
        stream = await context.query(
            request.ksql,
            request.streams_properties,
            request.session_variables,
            left=_stays,
            caller=Caller(
                credentials=authorization(websocket.scope),
                info=is_on(request.request_properties, INFO),
                token=requested_token(request.request_properties, context.service),
            ),
        )
        pull = stream.kind == "pull"
        context.opened(stream, ends_soon=pull)
        try:
            websocket.scope.setdefault("state", {})["query_id"] = stream.query_id
            async for text in in_turns(_frames(context, stream)):
                await websocket.send_text(text)
            if context.has_cut(stream):
                raise ShuttingDown
        finally:
            context.closed(stream)
    except WebSocketDisconnect:
        raise
    except Exception as error:  # noqa: BLE001 - the status is sent: a frame must report it
        await refuse(websocket, error)
        return
    await _close(websocket, DONE, "done")


async def _stays() -> bool:
    """Return False: the work for a client that leaves its websocket is cancelled."""
    return False


async def _frames(context: AppContext, stream: ResultStream | TextStream) -> AsyncIterator[str]:
    if stream.kind == "print":
        lines = stream.lines()
        while (texts := await context.wait(lambda: next(lines, None))) is not None:
            for text in texts:
                yield text.encode(errors="replace").decode()
        return
    form, sent = StreamedRows(stream), counter(stream)
    yield dumps(to_wire([FieldInfo.of(column) for column in stream.columns])).decode()
    batches = stream.batches()
    while (rows := await context.wait(lambda: next(batches, None))) is not None:
        for row in rows:
            frame = form.row(row)
            sent(len(frame))
            yield frame.decode()
    if context.has_cut(stream):
        return
    if notes := notes_of(stream):
        yield final_object("\n".join(notes)).decode()
    if is_dated(stream):
        freshness = await context.wait(lambda: freshness_of(stream))
        yield consistency_object(replicas_form(freshness)).decode()
    if (issue := token_of(stream)) is not None:
        token = await context.wait(issue)
        yield token_object(token.text()).decode()


async def _until_left(websocket: WebSocket) -> None:
    """Wait for the client's farewell: it has nothing else to say."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    short = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
    await websocket.close(code, short)
