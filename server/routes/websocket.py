"""Queries and PRINT over a websocket: GET /ws/query.

Source: ksqlDB developer guide, REST API, endpoint /ws/query.
"""

from __future__ import annotations

from fastapi import APIRouter, Response, WebSocket

from ksql.core import KsqlError
from ksql.http import LONGEST_TARGET
from server.answers.websocket_stream import converse, refuse
from server.wire import BadRequest, KsqlRequest, parse_body

router = APIRouter()
_VERSIONS = ("", "1")


class NoWebsocket(KsqlError):
    """The path of websockets was asked for without opening one."""

    def __init__(self) -> None:
        super().__init__(
            "/ws/query is a websocket",
            hint="Open it as one over HTTP/1.1, without a body, with a URL and headers of at most "
            f"{LONGEST_TARGET} bytes; longer queries go to /query-stream.",
        )


@router.websocket("/ws/query")
async def query(websocket: WebSocket) -> None:
    """Run the one query or PRINT of the parameter ``request``."""
    await websocket.accept()
    try:
        request = _request(websocket)
    except BadRequest as error:
        await refuse(websocket, error)
        return
    state = websocket.app.state
    await converse(websocket, state.context, request, state.websocket_s)


def _request(websocket: WebSocket) -> KsqlRequest:
    version = websocket.query_params.get("version", "")
    if version not in _VERSIONS:
        raise BadRequest(f"there is no version {version} of this interface")
    text = websocket.query_params.get("request")
    if text is None:
        raise BadRequest("the parameter 'request' is missing")
    return parse_body(text.encode(), KsqlRequest)


@router.get("/ws/query", include_in_schema=False)
async def no_websocket() -> Response:
    """Refuse what is no websocket, by name rather than as an unknown path."""
    raise NoWebsocket
