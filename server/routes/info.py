"""Who is answering: /, /info, /v1/metadata, /v1/metadata/id, /is_valid_property.

Source: ksqlDB developer guide, REST API, endpoint /info.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from ksql.base.config import UnknownProperty
from server.context import Door, door_of
from server.negotiate import negotiate
from server.values import dumps
from server.wire import JSON, V1_JSON, to_wire

router = APIRouter()


def _json(request: Request, value: object) -> Response:
    kind = negotiate(request.headers.get("accept"), (V1_JSON, JSON))
    return Response(dumps(value), media_type=kind)


@router.get("/")
async def root() -> Response:
    """The way to /info."""
    return RedirectResponse("/info", 307)


@router.get("/info")
async def info(request: Request) -> Response:
    """Version, ids and state of the server."""
    door = door_of(request)
    return _json(request, {"KsqlServerInfo": to_wire(await door.call(door.service.info))})


async def _cluster_id(door: Door) -> dict[str, Any]:
    found = await door.call(door.service.info)
    clusters = {"kafka-cluster": found.kafka_cluster_id, "ksql-cluster": found.ksql_service_id}
    return {"scope": {"path": [], "clusters": clusters}, "id": ""}


@router.get("/v1/metadata")
async def metadata(request: Request) -> Response:
    """Version and cluster id."""
    door = door_of(request)
    version = (await door.call(door.service.info)).version
    return _json(request, {"version": version, "clusterId": await _cluster_id(door)})


@router.get("/v1/metadata/id")
async def metadata_id(request: Request) -> Response:
    """The cluster id alone."""
    return _json(request, await _cluster_id(door_of(request)))


@router.get("/is_valid_property/{name:path}")
async def is_valid_property(request: Request, name: str) -> Response:
    """Whether SET takes that name; what it does not take is an error."""
    door = door_of(request)
    if not await door.call(door.service.is_valid_property, name):
        raise UnknownProperty(name)
    return _json(request, True)
