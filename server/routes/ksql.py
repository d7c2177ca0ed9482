"""Statements: POST /ksql, their progress at /status, and the end of a cluster: /ksql/terminate.

Source: ksqlDB developer guide, REST API, endpoints /ksql and /status.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.exceptions import HTTPException

from ksql.control.access import sees_command
from ksql.control.engine import CommandStatus, StatusName
from ksql.control.statements import DryRun, Entity
from ksql.core import KsqlError, NotFound, requested_token
from server.answers.row_encoders import dumps
from server.api import answers, one_of, schema_of, takes
from server.dependencies import Context, JsonKind, body_of
from server.leader_proxy import pass_on, passed_on
from server.signin import user_of
from server.wire import Body, KsqlRequest, Texts, to_wire

if TYPE_CHECKING:
    from ksql.cluster import Server
    from server.context import AppContext


router = APIRouter(tags=["statements"])
status_router = APIRouter(tags=["statements"])
"""Of progress: a server that takes no statements has it, too."""
_EXECUTED = [kind for kind in Entity.__subclasses__() if kind is not DryRun]
_ENTITIES = answers({"type": "array", "items": one_of("Entity", _EXECUTED)})
_DRY_RUNS = answers({"type": "array", "items": schema_of(DryRun)})


class TerminateRequest(Body):
    """The body of /ksql/terminate."""

    delete_topics: list[str] | None = Field(default=None, alias="deleteTopicList")
    request_properties: Texts = Field(default={}, alias="requestProperties")


Statements = Annotated[KsqlRequest, body_of(KsqlRequest)]
Termination = Annotated[TerminateRequest, body_of(TerminateRequest)]


@router.post("/ksql", responses=_ENTITIES, openapi_extra=takes(KsqlRequest))
async def execute(kind: JsonKind, body: Statements, context: Context, request: Request) -> Response:
    """Run statements, here or at the leader; the answer is an array of entities."""
    token = requested_token(body.request_properties, context.service)
    left = request.is_disconnected
    await context.caught_up(body.command_sequence_number, left)
    if context.service.is_follower and not passed_on(body.request_properties):
        target = await context.call(
            context.service.forward_target,
            body.ksql,
            body.streams_properties,
            body.session_variables,
        )
        if target is not None:
            return await _passed_on(target, "/ksql", context, request)
    entities = await context.execute(
        body.ksql,
        body.streams_properties,
        body.session_variables,
        left=left,
        credentials=request.headers.get("authorization", ""),
        user=user_of(request.scope),
        token=token,
    )
    return Response(dumps(to_wire(entities)), media_type=kind)


@router.post("/ksql/dry-run", responses=_DRY_RUNS, openapi_extra=takes(KsqlRequest))
async def dry_run(kind: JsonKind, body: Statements, context: Context, request: Request) -> Response:
    """Check statements, each with the effects of those before it; nothing is carried out."""
    await context.caught_up(body.command_sequence_number, request.is_disconnected)
    entities = await context.call(
        context.service.dry_run, body.ksql, body.streams_properties, body.session_variables
    )
    return Response(dumps(to_wire(entities)), media_type=kind)


@router.post("/ksql/terminate", responses=_ENTITIES, openapi_extra=takes(TerminateRequest))
async def terminate(
    kind: JsonKind, body: Termination, context: Context, request: Request
) -> Response:
    """Tear the cluster down; afterwards this server answers only that it has been."""
    if context.service.is_follower and not passed_on(body.request_properties):
        return await _passed_on(context.service.leader(), "/ksql/terminate", context, request)
    entities = await context.call(context.service.terminate, body.delete_topics or [])
    context.state = "TERMINATED"
    return Response(dumps(to_wire(entities)), media_type=kind)


async def _passed_on(server: Server, path: str, context: AppContext, request: Request) -> Response:
    """Answer as the leader does; what it has changed is known here before."""
    answer = await pass_on(context, request, server, path, await request.body())
    with contextlib.suppress(KsqlError):  # it was carried out, whenever this server sees it
        await context.caught_up(answer.last_command(), request.is_disconnected)
    return Response(answer.body, answer.status, media_type=answer.kind)


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


@status_router.get("/status", responses=answers(Statuses))
async def statuses(kind: JsonKind, context: Context) -> Response:
    """Return the last state of every statement this server knows."""
    by_command = await context.call(context.service.statuses)
    by_command = {key: status for key, status in by_command.items() if sees_command(key)}
    states = Statuses({command_id: status.status for command_id, status in by_command.items()})
    return Response(dumps(to_wire(states)), media_type=kind)


@status_router.get("/status/{command_id:path}", responses=answers(CommandStatus))
async def status(kind: JsonKind, command_id: str, context: Context) -> Response:
    """Return the state of one statement; an entity's name may itself contain slashes."""
    if command_id.count("/") < 2:
        raise HTTPException(404)
    if command_id.partition("/")[0] not in _TYPES:
        raise NotFound(f"Unknown type of command: {command_id.partition('/')[0]}")
    command_status = await context.call(context.service.status, command_id)
    if command_status is None or not sees_command(command_id):
        raise NotFound(f"Command not found: {command_id}")
    return Response(dumps(to_wire(command_status)), media_type=kind)
