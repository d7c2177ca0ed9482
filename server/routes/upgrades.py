"""The history of upgrades: GET /upgrades and GET /upgrades/{id}.

They are the statements SHOW UPGRADES and DESCRIBE UPGRADE as resources.
Source: docs/rest.md#upgrades.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from fastapi import APIRouter, Request, Response

from ksql.control.statements import UpgradeDescriptionEntity, Upgrades
from ksql.core import quote, string_literal
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.leader_proxy import pass_on
from server.signin import user_of
from server.wire import to_wire

if TYPE_CHECKING:
    from server.context import AppContext

router = APIRouter(tags=["statements"])
_DONE = 200


@router.get("/upgrades", responses=answers(Upgrades))
async def upgrades(
    kind: JsonKind, context: Context, request: Request, query: str | None = None
) -> Response:
    """List the upgrades, newest first; of one query, or of a stream or table."""
    source = "" if query is None else f" FOR {quote(query)}"
    return await _answered(f"SHOW UPGRADES{source};", kind, context, request)


@router.get("/upgrades/{upgrade_id:path}", responses=answers(UpgradeDescriptionEntity))
async def upgrade(kind: JsonKind, upgrade_id: str, context: Context, request: Request) -> Response:
    """Describe one upgrade; its id contains slashes."""
    text = f"DESCRIBE UPGRADE {string_literal(upgrade_id)};"
    return await _answered(text, kind, context, request)


async def _answered(text: str, kind: str, context: AppContext, request: Request) -> Response:
    """Answer with the entity of a statement, from the leader if this server follows one."""
    if context.service.is_follower:
        body = orjson.dumps({"ksql": text})
        leader = await context.call(context.service.leader)
        answer = await pass_on(context, request, leader, "/ksql", body)
        if answer.status != _DONE:
            return Response(answer.body, answer.status, media_type=answer.kind)
        return Response(orjson.dumps(orjson.loads(answer.body)[0]), media_type=kind)
    [entity] = await context.execute(
        text,
        {},
        {},
        left=request.is_disconnected,
        credentials=request.headers.get("authorization", ""),
        user=user_of(request.scope),
    )
    return Response(dumps(to_wire(entity)), media_type=kind)
