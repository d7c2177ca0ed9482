"""Routes for health: /healthcheck for people and monitors, /chc/* for orchestrators.

Source: ksqlDB developer guide, REST API, endpoint /healthcheck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Response

from ksql.control.statements import OMIT_NONE, Health
from ksql.core import NotReady
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.wire import JSON, to_wire

router = APIRouter(tags=["server"])


@dataclass(frozen=True, slots=True)
class PartHealth:
    """Whether a part works, and what is wrong if that is known."""

    is_healthy: bool
    reason: str | None = field(default=None, metadata=OMIT_NONE)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Whether the server works, part by part."""

    is_healthy: bool
    details: Mapping[str, PartHealth]
    server_state: str


class StatementsRefused(NotReady):
    """The command topic takes no statements."""

    def __init__(self, reason: str) -> None:
        super().__init__("statements that change something are refused", detail=reason)


_COMMANDS = "commandRunner"
_REPORTS = answers(HealthReport)
_REPORTS[503] = {**_REPORTS[200], "description": "a part does not work, or is not ready"}
_EMPTY = answers({"type": "object"}, JSON)


@router.get("/healthcheck", responses=_REPORTS)
async def healthcheck(kind: JsonKind, context: Context) -> Response:
    """Return a verdict per part; 503 as soon as one of them fails."""
    if context.state == "READY":
        health = await context.health()
        healthy = health.is_healthy
    else:
        health, healthy = Health(server_state=context.state), False
    parts = {
        part: PartHealth(well, health.reasons.get(part) or None)
        for part, well in health.details.items()
    }
    report = HealthReport(healthy, parts, health.server_state)
    return Response(dumps(to_wire(report)), 200 if healthy else 503, media_type=kind)


@router.get("/chc/live", responses=_EMPTY)
async def live() -> Response:
    """Show that the process answers."""
    return Response(b"{}", media_type=JSON)


@router.get("/chc/ready", responses=_EMPTY)
async def ready(context: Context) -> Response:
    """Answer whether statements are taken: 503 with the reason while they are not."""
    _ = context.service
    health = await context.health()
    if not health.details.get(_COMMANDS, True):
        raise StatementsRefused(health.reasons.get(_COMMANDS, ""))
    return Response(b"{}", media_type=JSON)
