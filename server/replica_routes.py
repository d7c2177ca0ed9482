"""A read of one copy as bytes for another server: frames, made in the threads for other servers.

Those threads never wait for another server, so two servers cannot wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Final

from ksql.cluster.replicas import frames, read_request
from ksql.cluster.replicas.replica_reader import ReadRejected, Unreachable

if TYPE_CHECKING:
    from ksql.cluster.replicas.read_request import ReadRequest
    from ksql.cluster.replicas.replica_status import ReplicaStatus
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
        """End it."""
        with self._lock:
            self._pieces.close()


def _pieces(service: Service, ask: ReadRequest) -> Generator[bytes]:
    try:
        reading = service.read_copy(ask)
    except ReadRejected as turned:
        yield _head(turned.standing, accepted=False) + frames.frame(frames.END)
        return
    except Unreachable as problem:
        yield frames.failed(str(problem))
        return
    yield _head(reading.standing, accepted=True)
    try:
        for some in reading.answers or ():
            yield from frames.answers(some)
        for chunk in reading.rows or ():
            yield from frames.rows(chunk)
    except Unreachable as problem:
        yield frames.failed(str(problem))
    else:
        yield frames.end(reading.seen(), reading.hidden())


def _head(standing: ReplicaStatus, *, accepted: bool) -> bytes:
    return frames.head({"accepted": accepted, "standing": read_request.standing_form(standing)})


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
