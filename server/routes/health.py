"""Whether the server works: /healthcheck for people and monitors, /chc/* for orchestrators.

Source: ksqlDB developer guide, REST API, endpoint /healthcheck.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from ksql.statements.answers import Health
from server.asked import JsonKind, TheDoor
from server.values import dumps
from server.wire import JSON

router = APIRouter()


@router.get("/healthcheck")
async def healthcheck(kind: JsonKind, door: TheDoor) -> Response:
    """Return a verdict per part; 503 as soon as one of them fails."""
    if door.state == "READY":
        found = await door.health()
        healthy = found.is_healthy
    else:
        found, healthy = Health(server_state=door.state), False
    body = {
        "isHealthy": healthy,
        "details": {part: _verdict(part, found) for part in found.details},
        "serverState": found.server_state,
    }
    return Response(dumps(body), 200 if healthy else 503, media_type=kind)


def _verdict(part: str, health: Health) -> dict[str, object]:
    well: dict[str, object] = {"isHealthy": health.details[part]}
    reason = health.reasons.get(part)
    return well | {"reason": reason} if reason else well


@router.get("/chc/live")
async def live() -> Response:
    """Show that the process answers."""
    return Response(b"{}", media_type=JSON)


@router.get("/chc/ready")
async def ready(door: TheDoor) -> Response:
    """Answer whether statements are taken: 503 with the reason until then."""
    _ = door.service
    return Response(b"{}", media_type=JSON)
