"""The routes /metrics, for Prometheus and others that read its formats, and /metrics/history."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from ksql.control.statements import QueryHistory
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.wire import to_wire

router = APIRouter(tags=["server"])
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the metrics of this moment; application/openmetrics-text if wanted",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/metrics", responses=_METRICS)
async def metrics(request: Request, context: Context) -> Response:
    """Return all metrics: OpenMetrics if the client wants that, else Prometheus' text."""
    accept = request.headers.get("accept", "")
    body, kind = await context.probe(partial(context.metrics, accept))
    return Response(body, headers={"content-type": kind, "cache-control": "no-store"})


@router.get("/metrics/history/{query_id}", responses=answers(QueryHistory))
async def history(query_id: str, kind: JsonKind, context: Context) -> Response:
    """Return the last hours of a query, a sample for each look of this server."""
    samples = await context.probe(partial(context.service.history, query_id))
    return Response(dumps(to_wire(samples)), media_type=kind)
