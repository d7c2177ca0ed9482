"""The route /metrics, for Prometheus and others that read its formats."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from server.dependencies import Context

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
