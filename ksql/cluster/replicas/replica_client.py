"""Reads the replicas of other servers over HTTP, through connections that are kept.

A server that could not be reached is left alone for a moment: while it is down, each request would
else wait for it again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import orjson

from ksql.cluster.calls import CallFailed, Calls, PeerAnswer, TooSlow
from ksql.cluster.replicas import frames
from ksql.cluster.replicas.read_request import (
    MEDIA,
    PATH,
    PROCESSED,
    STANDINGS,
    Processed,
    ReadRejected,
    ReadRequest,
    ReadResult,
    ReplicaReader,
    Unreachable,
    processed_of,
    status_of,
)
from ksql.cluster.replicas.replica_status import MISSING, ReplicaStatus
from ksql.core import HEADER, TRACEPARENT, KsqlError, NewerVersion, traceparent

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator, Iterator

    from ksql.cluster.members import Server
    from ksql.core import ServerSecret
    from ksql.views.stores import HiddenWindows

T = TypeVar("T")
_CONNECT_S: Final = 1.0
_LEFT_ALONE_S: Final = 0.5
_ERROR_BYTES: Final = 10_000
_END_OF_REFUSAL: Final = 2  # its last frame, and what comes after that
_NOT_NOW: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.NOT_FOUND)


class Peers:
    """The other servers; for any number of threads."""

    def __init__(
        self,
        timeout_s: float,
        *,
        tls: ssl.SSLContext | None = None,
        now_s: Callable[[], float] = time.monotonic,
        silent: Callable[[Server], str] | None = None,
        secret: ServerSecret | None = None,
    ) -> None:
        """Take ``timeout_s``: how long one may take to answer; with ``tls`` they speak it.

        ``silent``: why a server is not worth waiting for, or nothing. With the servers' ``secret``
        no server is sent a user's credentials: it might only say that it is one.
        """
        self._secret = secret
        self._timeout_s = timeout_s
        self._calls = Calls(min(_CONNECT_S, timeout_s), tls, silent=silent)
        self._now_s = now_s
        self._down: dict[Server, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def replicas_of(self, server: Server, credentials: str = "") -> ReplicaReader:
        """Return a server's replicas, read with these credentials (an Authorization header)."""
        return _RemoteReplicas(self, server, credentials)

    def replica_statuses(
        self, server: Server, credentials: str = ""
    ) -> dict[tuple[str, int], ReplicaStatus]:
        """Return how far all replicas of a server are, by query and partition.

        Raises: Unreachable, ReadRejected.
        """
        with self.exchange(server, "GET", STANDINGS, credentials) as response:
            body = orjson.loads(response.read())
        try:
            return {
                (query, int(partition)): status_of(form)
                for query, parts in body["standings"].items()
                for partition, form in parts.items()
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unreachable(f"its answer cannot be read: {error}") from error

    def processed(self, server: Server, query_id: str, credentials: str) -> Processed:
        """Return how far a query that a server runs has processed its sources.

        Raises: Unreachable, ReadRejected.
        """
        path = f"{PROCESSED}?query={quote(query_id, safe='')}"
        with self.exchange(server, "GET", path, credentials) as response:
            data = response.read()
        try:
            return processed_of(orjson.loads(data))
        except (ValueError, NewerVersion) as error:
            raise Unreachable(f"its answer cannot be read: {error}") from error

    def post(
        self, server: Server, path: str, body: bytes, credentials: str, timeout_s: float
    ) -> None:
        """Send a message and wait until it has been taken.

        Raises: Unreachable, ReadRejected.
        """
        with self.exchange(server, "POST", path, credentials, body, timeout_s) as response:
            response.read()

    @contextlib.contextmanager
    def exchange(
        self,
        server: Server,
        method: str,
        path: str,
        credentials: str,
        body: bytes = b"",
        timeout_s: float | None = None,
    ) -> Iterator[PeerAnswer]:
        """Send a request; its answer has begun well, and is closed at the end.

        Raises: Unreachable; ReadRejected for a server that starts, ends, or does not know the path.
        """
        self._check(server)
        headers = {"content-type": "application/json"}
        if trace := traceparent():
            headers[TRACEPARENT] = trace
        if self._secret is not None:
            headers[HEADER] = self._secret.token(method, path, str(server))
        elif credentials:
            headers["authorization"] = credentials
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            with self._calls.call(
                server, method, path, body=body, headers=headers, timeout_s=patience_s
            ) as called:
                if called.status in _NOT_NOW:
                    raise ReadRejected(MISSING)
                if called.status != HTTPStatus.OK:
                    raise Unreachable(_refusal(called))
                yield called
        except CallFailed as failed:
            if not isinstance(failed, TooSlow):
                with self._lock:
                    self._down[server] = self._now_s() + _LEFT_ALONE_S, str(failed)
            raise Unreachable(str(failed)) from failed

    def close(self) -> None:
        self._calls.close()

    def _check(self, server: Server) -> None:
        with self._lock:
            until, reason = self._down.get(server, (0.0, ""))
            if self._now_s() < until:
                raise Unreachable(reason)
            self._down.pop(server, None)


class _RemoteReplicas(ReplicaReader):
    """The replicas of one other server."""

    def __init__(self, peers: Peers, server: Server, credentials: str) -> None:
        self._peers = peers
        self._server = server
        self._credentials = credentials

    def read(self, ask: ReadRequest) -> ReadResult:
        received = self._frames(ask)
        kind, data = next(received)
        if kind != frames.HEAD:
            raise Unreachable("its answer has no beginning")
        fields = orjson.loads(data)
        status = status_of(fields["standing"])
        if not fields["accepted"]:
            with contextlib.closing(received):
                for _ in range(_END_OF_REFUSAL):
                    next(received, None)
            raise ReadRejected(status)
        ended = _AnswerEnd()
        if ask.keys is not None:
            answers = ended.of(received, frames.stored_answers)
            return ReadResult(status, answers=answers, seen=ended.seen, hidden=ended.hidden)
        rows = ended.of(received, frames.stored_rows)
        return ReadResult(status, rows=rows, seen=ended.seen, hidden=ended.hidden)

    def _frames(self, ask: ReadRequest) -> Any:
        """Return the answer's frames; every failure on the way is the server's."""
        body = orjson.dumps(ask.form())
        try:
            with self._peers.exchange(
                self._server, "POST", PATH, self._credentials, body
            ) as response:
                if response.content_type != MEDIA:
                    raise Unreachable("its answer is none of a store")
                pieces = response.pieces()
                yield from frames.frames(pieces)
                next(pieces, None)  # after the last frame is the end, and the connection is free
        except KsqlError as error:
            raise Unreachable(error.text()) from error


class _AnswerEnd:
    """The end of an answer, once it has come."""

    def __init__(self) -> None:
        self._end = frames.End()

    def seen(self) -> int | None:
        """Return the offset that the end says; None before it."""
        return self._end.seen

    def hidden(self) -> HiddenWindows | None:
        """Return the hidden windows that the end says; None before it."""
        return self._end.hidden

    def of(
        self, received: Generator[tuple[int, bytes]], read: Callable[[bytes], list[T]]
    ) -> Iterator[list[T]]:
        """Yield what the frames hold; keep what the last one says."""
        with contextlib.closing(received):
            for kind, data in received:
                if kind == frames.END:
                    self._end = frames.end_of(data)
                else:
                    yield read(data)


def _refusal(called: PeerAnswer) -> str:
    """Return why a server did not answer well, as it says itself."""
    text = b""
    for piece in called.pieces():
        text += piece
        if len(text) > _ERROR_BYTES:
            break
    try:
        return f"{called.status}: {orjson.loads(text)['message']}"
    except (ValueError, KeyError, TypeError):
        return f"it answered with the status {called.status}"
