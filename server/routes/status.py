"""How far distributed statements have come: /status and /status/{type}/{entity}/{action}.

Source: ksqlDB developer guide, REST API, endpoint /status.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from ksql.base.errors import NotFound
from server.context import door_of
from server.negotiate import negotiate
from server.values import dumps
from server.wire import JSON, V1_JSON, to_wire

router = APIRouter()
OFFERED = (V1_JSON, JSON)
_TYPES = frozenset(
    ("stream", "table", "type", "terminate", "pause", "resume", "cluster", "topic", "alter_system")
)


@router.get("/status")
async def statuses(request: Request) -> Response:
    """The last state of every statement this server knows."""
    kind = negotiate(request.headers.get("accept"), OFFERED)
    door = door_of(request)
    found = await door.call(door.service.statuses)
    states = {command_id: status.status for command_id, status in found.items()}
    return Response(dumps({"commandStatuses": states}), media_type=kind)


@router.get("/status/{command_id:path}")
async def status(request: Request, command_id: str) -> Response:
    """The state of one statement; an entity's name may itself contain slashes."""
    kind = negotiate(request.headers.get("accept"), OFFERED)
    if command_id.count("/") < 2:
        raise HTTPException(404)
    if command_id.partition("/")[0] not in _TYPES:
        raise NotFound(f"Unknown type of command: {command_id.partition('/')[0]}")
    door = door_of(request)
    found = await door.call(door.service.status, command_id)
    if found is None:
        raise NotFound(f"Command not found: {command_id}")
    return Response(dumps(to_wire(found)), media_type=kind)
