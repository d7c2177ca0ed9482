"""The report of this server on its queries, for the other servers of the service.

Source: docs/operations.md#several-servers.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ksql.control.statements import PATH, QUERY
from server.dependencies import Context
from server.wire import JSON

router = APIRouter(tags=["cluster"])


@router.get(PATH, include_in_schema=False)
async def reports(request: Request, context: Context) -> Response:
    """Report the queries that run here; servers ask this of one another."""
    service, queries = context.service, request.query_params.getlist(QUERY)
    return Response(await context.peer(lambda: service.report(queries)), media_type=JSON)
