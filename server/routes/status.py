"""The progress of distributed statements: /status and /status/{type}/{entity}/{action}.

Source: ksqlDB developer guide, REST API, endpoint /status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from ksql.control.engine import CommandStatus, StatusName
from ksql.core import NotFound
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.wire import to_wire

router = APIRouter(tags=["statements"])
_TYPES = frozenset(
    (
        *("stream", "table", "type", "terminate", "pause", "resume", "upgrade"),
        *("cluster", "topic", "alter_system"),
    )
)


@dataclass(frozen=True, slots=True)
class Statuses:
    """The last state of each statement, by command id."""

    command_statuses: Mapping[str, StatusName]


@router.get("/status", responses=answers(Statuses))
async def statuses(kind: JsonKind, context: Context) -> Response:
    """Return the last state of every statement this server knows."""
    by_command = await context.call(context.service.statuses)
    states = Statuses({command_id: status.status for command_id, status in by_command.items()})
    return Response(dumps(to_wire(states)), media_type=kind)


@router.get("/status/{command_id:path}", responses=answers(CommandStatus))
async def status(kind: JsonKind, command_id: str, context: Context) -> Response:
    """Return the state of one statement; an entity's name may itself contain slashes."""
    if command_id.count("/") < 2:
        raise HTTPException(404)
    if command_id.partition("/")[0] not in _TYPES:
        raise NotFound(f"Unknown type of command: {command_id.partition('/')[0]}")
    command_status = await context.call(context.service.status, command_id)
    if command_status is None:
        raise NotFound(f"Command not found: {command_id}")
    return Response(dumps(to_wire(command_status)), media_type=kind)
