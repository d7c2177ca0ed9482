"""The routes /metrics, for Prometheus and others that read its formats, and /metrics/history."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response

from ksql.control.statements import QueryHistory
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.leader_proxy import from_leader
from server.wire import to_wire

router = APIRouter(tags=["server"])
_FRESH: Final = {"cache-control": "no-store"}
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the metrics of this moment; application/openmetrics-text if wanted",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


Whose = Annotated[Literal["own", "leader"], Query()]
"""Whose numbers are wanted: those of the server that is asked, or of the one that leads."""


@router.get("/metrics", responses=_METRICS)
async def metrics(request: Request, context: Context, server: Whose = "own") -> Response:
    """Return all metrics: OpenMetrics if the client wants that, else Prometheus' text."""
    answer = await from_leader(context, request) if server == "leader" else None
    if answer is not None:
        return Response(answer.body, answer.status, {**_FRESH, "content-type": answer.kind})
    return await own_metrics(request, context)


async def own_metrics(request: Request, context: Context) -> Response:
    """Return the metrics of the server that is asked."""
    accept = request.headers.get("accept", "")
    body, kind = await context.probe(partial(context.metrics, accept))
    return Response(body, headers={**_FRESH, "content-type": kind})


@router.get("/metrics/history/{query_id}", responses=answers(QueryHistory))
async def history(
    query_id: str, kind: JsonKind, request: Request, context: Context, server: Whose = "own"
) -> Response:
    """Return the last hours of a query, a sample for each look of the server."""
    answer = await from_leader(context, request) if server == "leader" else None
    if answer is not None:
        return Response(answer.body, answer.status, media_type=answer.kind)
    samples = await context.probe(partial(context.service.history, query_id))
    return Response(dumps(to_wire(samples)), media_type=kind)
