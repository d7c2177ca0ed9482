"""Statements: POST /ksql, and the end of a cluster: POST /ksql/terminate.

Source: ksqlDB developer guide, REST API, endpoint /ksql.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from ksql.statements.entities import Entity
from server.api import answers, one_of, takes
from server.asked import JsonKind, TheDoor, body_of
from server.values import dumps
from server.wire import Body, KsqlRequest, to_wire

router = APIRouter(tags=["statements"])
_ENTITIES = answers({"type": "array", "items": one_of("Entity", Entity.__subclasses__())})


class TerminateRequest(Body):
    """The body of /ksql/terminate."""

    delete_topics: list[str] | None = Field(default=None, alias="deleteTopicList")


Statements = Annotated[KsqlRequest, body_of(KsqlRequest)]
Termination = Annotated[TerminateRequest, body_of(TerminateRequest)]


@router.post("/ksql", responses=_ENTITIES, openapi_extra=takes(KsqlRequest))
async def execute(kind: JsonKind, body: Statements, door: TheDoor) -> Response:
    """Run statements; the answer is an array of their entities."""
    entities = await door.call(
        door.service.execute,
        body.ksql,
        body.streams_properties,
        body.session_variables,
        body.command_sequence_number,
    )
    return Response(dumps(to_wire(entities)), media_type=kind)


@router.post("/ksql/terminate", responses=_ENTITIES, openapi_extra=takes(TerminateRequest))
async def terminate(kind: JsonKind, body: Termination, door: TheDoor) -> Response:
    """Tear the cluster down; afterwards this server answers only that it has been."""
    entities = await door.call(door.service.terminate, body.delete_topics or [])
    door.state = "TERMINATED"
    return Response(dumps(to_wire(entities)), media_type=kind)
