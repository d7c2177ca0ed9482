"""The server's identity: /, /info, /v1/metadata, /v1/metadata/id, /is_valid_property.

Source: ksqlDB developer guide, REST API, endpoint /info.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from ksql.base.config import UnknownProperty
from server.asked import JsonKind, TheDoor
from server.context import Door
from server.values import dumps
from server.wire import to_wire

router = APIRouter()


@router.get("/")
async def root() -> Response:
    """Return the way to /info."""
    return RedirectResponse("/info", 307)


@router.get("/info")
async def info(kind: JsonKind, door: TheDoor) -> Response:
    """Version, ids and state of the server."""
    return Response(
        dumps({"KsqlServerInfo": to_wire(await door.call(door.service.info))}), media_type=kind
    )


async def _cluster_id(door: Door) -> dict[str, Any]:
    found = await door.call(door.service.info)
    clusters = {"kafka-cluster": found.kafka_cluster_id, "ksql-cluster": found.ksql_service_id}
    return {"scope": {"path": [], "clusters": clusters}, "id": ""}


@router.get("/v1/metadata")
async def metadata(kind: JsonKind, door: TheDoor) -> Response:
    """Version and cluster id."""
    version = (await door.call(door.service.info)).version
    return Response(
        dumps({"version": version, "clusterId": await _cluster_id(door)}), media_type=kind
    )


@router.get("/v1/metadata/id")
async def metadata_id(kind: JsonKind, door: TheDoor) -> Response:
    """Return the cluster id alone."""
    return Response(dumps(await _cluster_id(door)), media_type=kind)


@router.get("/is_valid_property/{name:path}")
async def is_valid_property(kind: JsonKind, name: str, door: TheDoor) -> Response:
    """Return whether SET takes that name; what it does not take is an error."""
    if not await door.call(door.service.is_valid_property, name):
        raise UnknownProperty(name)
    return Response(dumps(True), media_type=kind)
