"""Statements: POST /ksql, and the end of a cluster: POST /ksql/terminate.

Source: ksqlDB developer guide, REST API, endpoint /ksql.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from server.context import door_of
from server.negotiate import negotiate
from server.values import dumps
from server.wire import JSON, V1_JSON, KsqlRequest, TerminateRequest, read_body, to_wire

router = APIRouter()
OFFERED = (V1_JSON, JSON)


@router.post("/ksql")
async def execute(request: Request) -> Response:
    """Run statements; the answer is an array of their entities."""
    kind = negotiate(request.headers.get("accept"), OFFERED)
    door = door_of(request)
    body = await read_body(request, KsqlRequest)
    entities = await door.call(
        door.service.execute,
        body.ksql,
        body.streams_properties,
        body.session_variables,
        body.command_sequence_number,
    )
    return Response(dumps(to_wire(entities)), media_type=kind)


@router.post("/ksql/terminate")
async def terminate(request: Request) -> Response:
    """Tear the cluster down; afterwards this server answers only that it has been."""
    kind = negotiate(request.headers.get("accept"), OFFERED)
    door = door_of(request)
    body = await read_body(request, TerminateRequest)
    entities = await door.call(door.service.terminate, body.delete_topics or [])
    door.state = "TERMINATED"
    return Response(dumps(to_wire(entities)), media_type=kind)
