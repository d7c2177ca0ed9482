"""The records of a topic from an offset or a time on: GET /topics/{topic}/records.

Source: docs/rest.md#topics.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from ksql.core import LATEST_MS
from ksql.serving import MOST_RECORDS, BrowsedRecords, BrowseRequest
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind
from server.wire import BadRequest, to_wire

router = APIRouter(tags=["topics"])
_FORM: Final = "the parameter 'next' is a list of partition:offset, as 0:15,1:20"
_NEXT: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,19}")


@router.get("/topics/{topic}/records", responses=answers(BrowsedRecords))
async def records(
    kind: JsonKind,
    topic: str,
    context: Context,
    *,
    partition: Annotated[int | None, Query(ge=0)] = None,
    offset: int | None = None,
    time: Annotated[int | None, Query(ge=0, le=LATEST_MS)] = None,
    next_: Annotated[str | None, Query(alias="next")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RECORDS)] = 100,
) -> Response:
    """Return records as text, from an offset or a time (ms since 1970) on; it waits for none."""
    offsets = None if next_ is None else _offsets(next_)
    ask = BrowseRequest(topic, partition, offset, time, offsets, limit)
    browsed = await context.call(context.service.browse, ask)
    return Response(dumps(to_wire(browsed)), media_type=kind)


def _offsets(text: str) -> dict[int, int]:
    """Return the offsets by partition.

    Raises: BadRequest.
    """
    offsets = {}
    for part in text.split(","):
        if not _NEXT.fullmatch(part):
            raise BadRequest(_FORM)
        partition, _, offset = part.partition(":")
        offsets[int(partition)] = int(offset)
    return offsets
