"""Replicas of tables over HTTP: which servers hold them, their lag, their rows in frames.

Source: KIP-535 (allLocalStorePartitionLags, queryMetadataForKey); docs/rest.md#stores.

A read of one replica is sent to another server in frames, made in threads for other servers.

Those threads never wait for another server, so two servers cannot wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from ksql.cluster.replicas import (
    MEDIA,
    PATH,
    PROCESSED,
    STANDINGS,
    ReadRejected,
    ReadRequest,
    Unreachable,
    frames,
    read_request,
)
from ksql.core import NewerVersion
from server.answers.row_encoders import dumps
from server.api import answers
from server.dependencies import Context, JsonKind, context_of
from server.wire import BadRequest

if TYPE_CHECKING:
    from ksql.cluster.replicas import ReplicaStatus
    from server.context import AppContext
    from server.service import Service


_FIRST_BYTES: Final = 262_144


class ReplicaAnswer:
    """The frames of one read; ``close`` may come from another thread."""

    def __init__(self, service: Service, ask: ReadRequest) -> None:
        self._pieces = _pieces(service, ask)
        self._lock = threading.Lock()

    def next(self) -> bytes | None:
        """Return the next piece; None at the end."""
        with self._lock:
            return next(self._pieces, None)

    def close(self) -> None:
        with self._lock:
            self._pieces.close()


def _pieces(service: Service, ask: ReadRequest) -> Generator[bytes]:
    try:
        reading = service.read_replica(ask)
    except ReadRejected as turned:
        yield _head(turned.status, accepted=False) + frames.frame(frames.END)
        return
    except Unreachable as problem:
        yield frames.failed(str(problem))
        return
    yield _head(reading.status, accepted=True)
    try:
        for some in reading.answers or ():
            yield from frames.answers(some)
        for chunk in reading.rows or ():
            yield from frames.rows(chunk)
    except Unreachable as problem:
        yield frames.failed(str(problem))
    else:
        yield frames.end(reading.seen(), reading.hidden())


def _head(status: ReplicaStatus, *, accepted: bool) -> bytes:
    return frames.head({"accepted": accepted, "standing": read_request.status_form(status)})


def collected(answer: ReplicaAnswer) -> tuple[bytes, bool]:
    """Return the first pieces together, and whether they are all."""
    head = bytearray()
    while len(head) < _FIRST_BYTES:
        piece = answer.next()
        if piece is None:
            return bytes(head), True
        head += piece
    return bytes(head), False


async def rest(context: AppContext, answer: ReplicaAnswer, first: bytes) -> AsyncIterator[bytes]:
    """Yield the first pieces and those after them; the answer ends when its reader leaves."""
    try:
        yield first
        while (piece := await context.peer(answer.next)) is not None:
            yield piece
    finally:
        context.closed(answer)


router = APIRouter(tags=["stores"])
_REPLICA_STATUS: Final = {
    "type": "object",
    "properties": {
        "state": {"enum": ["RUNNING", "RESTORING"]},
        "role": {"enum": ["ACTIVE", "STANDBY", "NONE"]},
        "position": {"type": "integer"},
        "offsetLag": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "timeLagMs": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
}
_STANDINGS: Final = {
    "type": "object",
    "properties": {
        "host": {"type": "string"},
        "standings": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": _REPLICA_STATUS},
        },
    },
}
_HOLDERS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "partition": {"type": "integer"},
            "topic": {"type": "string"},
            "query": {"type": "string"},
            "active": {"type": "string"},
            "standbys": {"type": "array", "items": {"type": "string"}},
        },
    },
}


@router.post(PATH, include_in_schema=False)
async def read(request: Request) -> Response:
    """Read rows of one copy that this server holds; servers ask this of one another."""
    context = context_of(request)
    try:
        form = orjson.loads(await request.body())
        ask = ReadRequest.of(form if isinstance(form, dict) else {})
    except (ValueError, NewerVersion) as error:
        raise BadRequest(f"the request cannot be read: {error}") from error
    answer = ReplicaAnswer(context.service, ask)
    context.opened(answer, ends_soon=True)
    try:
        first, ended = await context.peer(lambda: collected(answer))
    except BaseException:
        context.closed(answer)
        raise
    if ended:
        context.closed(answer)
        return Response(first, media_type=MEDIA)
    return StreamingResponse(rest(context, answer, first), media_type=MEDIA)


@router.get(STANDINGS, responses=answers(_STANDINGS))
async def standings(kind: JsonKind, context: Context) -> Response:
    """Return how far every copy of this server is, by query and partition."""
    by_query: dict[str, dict[str, Any]] = {}
    for (query, partition), status in (
        await context.call(context.service.replica_statuses)
    ).items():
        by_query.setdefault(query, {})[str(partition)] = read_request.status_form(status)
    return Response(dumps({"host": context.service.host, "standings": by_query}), media_type=kind)


@router.get(PROCESSED, include_in_schema=False)
async def processed(query: str, kind: JsonKind, context: Context) -> Response:
    """Return how far a query of this server is; servers ask this of the leader."""
    service = context.service
    offsets = await context.peer(lambda: service.processed(query))
    return Response(dumps(read_request.processed_form(offsets)), media_type=kind)


@router.get("/stores/{table}/hosts", responses=answers(_HOLDERS))
async def hosts(
    table: str,
    kind: JsonKind,
    context: Context,
    key: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Return the servers that hold a table's partitions; with ``key`` only that of the key."""
    columns = None if key is None else [_column(text) for text in key]
    return Response(
        dumps(await context.call(context.service.holders, table, columns)), media_type=kind
    )


def _column(text: str) -> Any:
    """Return a key column: JSON, or the text itself if it is none."""
    try:
        return orjson.loads(text)
    except ValueError:
        return text


OFTEN: Final = {PATH: read}
"""The paths that are asked most, and what answers them."""
