"""Cluster routes: /clusterStatus for clients; heartbeats, lags and reports between servers.

Source: ksqlDB developer guide, REST API, endpoint /clusterStatus; docs/operations.md.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ksql.cluster import Server
from ksql.cluster import members as c
from ksql.control.statements import PATH, QUERY
from server.answers.row_encoders import dumps
from server.api import answers, takes
from server.dependencies import Context, JsonKind, accepted_body, context_of
from server.wire import JSON, V1_JSON, Body, to_wire

router = APIRouter(tags=["cluster"])


class HostInfo(Body):
    """A server's address."""

    host: str
    port: int

    def text(self) -> str:
        """Return it as the servers of the service name each other."""
        return str(Server(self.host, self.port))


class HeartbeatRequest(Body):
    """The body of /heartbeat."""

    host_info: HostInfo = Field(alias="hostInfo")
    timestamp: int = 0


class Lag(Body):
    """How far a store's partition is behind its topic."""

    current: int = Field(alias="currentOffsetPosition")
    end: int = Field(alias="endOffsetPosition")
    lag: int = Field(alias="offsetLag")


class StoreLags(Body):
    """The lags of one store, by partition."""

    by_partition: dict[str, Lag] = Field(alias="lagByPartition")


class HostLags(Body):
    """The lags of a server's stores."""

    stores: dict[str, StoreLags] = Field(default={}, alias="stateStoreLags")
    updated_ms: int = Field(default=0, alias="updateTimeMs")


class LagRequest(Body):
    """The body of /lag."""

    host: HostInfo = Field(alias="ksqlHost")
    lags: HostLags = Field(alias="hostStoreLags")


@router.get("/clusterStatus", responses=answers(c.ClusterStatus))
async def cluster_status(kind: JsonKind, context: Context) -> Response:
    """Return the servers that are known, and how far their stores are."""
    status = await context.call(context.service.cluster_status)
    return Response(dumps(to_wire(status)), media_type=kind)


@router.post(
    "/heartbeat", responses=answers(dict[str, bool]), openapi_extra=takes(HeartbeatRequest)
)
async def heartbeat(request: Request) -> Response:
    """Note that another server lives."""
    kind, body = await accepted_body(request, (V1_JSON, JSON), HeartbeatRequest)
    context = context_of(request)
    await context.call(context.service.note_alive, body.host_info.text())
    return Response(dumps({"ok": True}), media_type=kind)


@router.post("/lag", responses=answers(dict[str, bool]), openapi_extra=takes(LagRequest))
async def lag(request: Request) -> Response:
    """Note how far another server's stores are."""
    kind, body = await accepted_body(request, (V1_JSON, JSON), LagRequest)
    context = context_of(request)
    await context.call(context.service.reported, body.host.text(), _lags(body.lags))
    return Response(dumps({"ok": True}), media_type=kind)


def _lags(lags: HostLags) -> c.HostStoreLags:
    stores = {
        name: c.StateStoreLags(
            {
                partition: c.LagInfo(partition_lag.current, partition_lag.end, partition_lag.lag)
                for partition, partition_lag in store.by_partition.items()
            }
        )
        for name, store in lags.stores.items()
    }
    return c.HostStoreLags(stores, lags.updated_ms)


OFTEN: Final = {"/heartbeat": heartbeat, "/lag": lag}
"""The paths that are asked most, and what answers them."""


@router.get(PATH, include_in_schema=False)
async def reports(request: Request, context: Context) -> Response:
    """Report the queries that run here; servers ask this of one another."""
    service, queries = context.service, request.query_params.getlist(QUERY)
    return Response(await context.peer(lambda: service.report(queries)), media_type=JSON)
