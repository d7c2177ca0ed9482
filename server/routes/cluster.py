"""Talk between servers: /clusterStatus, /heartbeat, /lag; absent while heartbeats are off.

Source: ksqlDB developer guide, REST API, endpoint /clusterStatus.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from ksql.base.errors import NotFound

router = APIRouter()


class HeartbeatsOff(NotFound):
    """The cluster's state was asked of a server that exchanges no heartbeats."""

    def __init__(self) -> None:
        super().__init__("this server exchanges no heartbeats (ksql.heartbeat.enable is false)")


@router.get("/clusterStatus")
@router.post("/heartbeat")
@router.post("/lag")
async def cluster() -> Response:
    """Refused until servers form clusters."""
    raise HeartbeatsOff
