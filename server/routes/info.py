"""The server's identity: /, /info, /v1/metadata, /v1/metadata/id, /is_valid_property.

Source: ksqlDB developer guide, REST API, endpoint /info.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from ksql.control.statements import ServerInfo
from server.answers.row_encoders import dumps
from server.api import answers
from server.context import AppContext
from server.dependencies import Context, JsonKind
from server.wire import to_wire

router = APIRouter(tags=["server"])


@dataclass(frozen=True, slots=True)
class ClusterScope:
    """The cluster that an id is of."""

    path: tuple[str, ...]
    clusters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClusterId:
    """The ids of the Kafka cluster and of the service."""

    scope: ClusterScope
    id: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """Version and cluster of the server."""

    version: str
    cluster_id: ClusterId


@router.get("/", responses={307: {"description": "to /info"}}, status_code=307)
async def root() -> Response:
    """Return the way to /info."""
    return RedirectResponse("/info", 307)


@router.get("/info", responses=answers(dict[str, ServerInfo]))
async def info(kind: JsonKind, context: Context) -> Response:
    """Return version, ids and state of the server."""
    return Response(
        dumps({"KsqlServerInfo": to_wire(await context.probe(context.service.info))}),
        media_type=kind,
    )


async def _metadata(context: AppContext) -> Metadata:
    server_info = await context.probe(context.service.info)
    clusters = {
        "kafka-cluster": server_info.kafka_cluster_id,
        "ksql-cluster": server_info.ksql_service_id,
    }
    return Metadata(server_info.version, ClusterId(ClusterScope((), clusters), ""))


@router.get("/v1/metadata", responses=answers(Metadata))
async def metadata(kind: JsonKind, context: Context) -> Response:
    """Return version and cluster id."""
    return Response(dumps(to_wire(await _metadata(context))), media_type=kind)


@router.get("/v1/metadata/id", responses=answers(ClusterId))
async def metadata_id(kind: JsonKind, context: Context) -> Response:
    """Return the cluster id alone."""
    return Response(dumps(to_wire((await _metadata(context)).cluster_id)), media_type=kind)


@router.get("/is_valid_property/{name:path}", responses=answers(bool))
async def is_valid_property(kind: JsonKind, name: str, context: Context) -> Response:
    """Return whether SET takes that name; what it does not take is an error."""
    await context.call(context.service.check_property, name)
    return Response(dumps(True), media_type=kind)
