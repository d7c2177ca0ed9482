"""Routes for health: /healthcheck for people; /livez, /readyz, /chc/* for orchestrators.

Source: ksqlDB developer guide, REST API, endpoint /healthcheck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request, Response

from ksql.control.statements import OMIT_NONE, Health
from ksql.core import NotReady
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.pulse import Pulse
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


@dataclass(frozen=True, slots=True)
class UnreadyReason:
    """A reason to send the server no requests: a word, and what it means here."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the server should get requests."""

    is_ready: bool
    reasons: tuple[UnreadyReason, ...]


class StatementsRefused(NotReady):
    """The command topic takes no statements."""

    def __init__(self, reason: str) -> None:
        super().__init__("statements that change something are refused", detail=reason)


_COMMANDS = "commandRunner"
_REPORTS = answers(HealthReport)
_REPORTS[503] = {**_REPORTS[200], "description": "a part does not work, or is not ready"}
_EMPTY = answers({"type": "object"}, JSON)
_READY = answers(Readiness, JSON)
_READY[503] = {**_READY[200], "description": "not ready, with the reasons"}
_FRESH = {"cache-control": "no-store"}


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


@router.get("/livez", responses=_EMPTY)
async def livez() -> Response:
    """Show that the event loop answers; nothing else is looked at."""
    return Response(b"{}", media_type=JSON, headers=_FRESH)


async def livez_beside(request: Request) -> Response:
    """Answer from another event loop for the one of REST.

    Raises: LoopHangs.
    """
    pulse: Pulse | None = request.app.state.pulse
    if pulse is not None:
        pulse.check()
    return await livez()


@router.get("/readyz", responses=_READY)
async def readyz(context: Context) -> Response:
    """Answer whether the server should get requests: 503 with all reasons while it should not."""
    reasons = tuple(UnreadyReason(*reason) for reason in context.unready().items())
    body = dumps(to_wire(Readiness(not reasons, reasons)))
    return Response(body, 503 if reasons else 200, media_type=JSON, headers=_FRESH)
