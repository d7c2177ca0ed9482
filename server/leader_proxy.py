"""Statements, and looks at metrics, passed on to the leader, and its answer as it is.

A request that was passed on once is marked, and is never passed on again.
Source: ksqlDB developer guide, REST API, request properties.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

import httpx
import orjson
from pydantic_core import from_json

from ksql.core import HEADER, TRACEPARENT, NotReady, traceparent
from server.signin import ADDRESS_HEADER, USER_HEADER, address_of, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from ksql.cluster import Server
    from ksql.core import ServerSecret
    from server.context import AppContext

PASSED_ON: Final = "request.ksql.internal.request"
_LOOK_S: Final = 1.0
_HEADERS: Final = ("authorization", "accept", "content-type")
_TIMEOUT: Final = httpx.Timeout(5.0, read=None)  # a statement takes as long as it takes
_LOOK_TIMEOUT: Final = httpx.Timeout(5.0)  # what is looked at is in memory


class ServerAway(NotReady):
    """The leader did not take a request, or did not answer it."""

    def __init__(self, server: Server, reason: str) -> None:
        super().__init__(
            f"the leader of the service, {server}, does not answer",
            detail=reason,
            hint="Wait some seconds until another one takes over. Look with SHOW or DESCRIBE "
            "whether the statement was carried out before you send it again.",
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of another server, unread."""

    status: int
    body: bytes
    kind: str

    def last_command(self) -> int:
        """Return the highest command sequence number in it; -1 if there is none."""
        if self.status != 200:
            entities = orjson.loads(self.body).get("entities", []) if self.body[:1] == b"{" else []
        else:
            entities = orjson.loads(self.body)
        numbers = [entity.get("commandSequenceNumber", -1) for entity in entities]
        return max((int(number) for number in numbers), default=-1)


def passed_on(properties: Mapping[str, str]) -> bool:
    """Return whether a request was passed on by another server."""
    return properties.get(PASSED_ON, "").lower() == "true"


@dataclass(frozen=True, slots=True)
class LeaderProxy:
    """A request on its way to the leader: its path, body and headers; a GET has no body.

    ``trace`` is the header traceparent that it is passed on with, ``address`` the client's.
    """

    server: Server
    scheme: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    secret: ServerSecret | None = None
    user: str = ""
    trace: str = ""
    address: str = ""
    method: Literal["GET", "POST"] = "POST"

    def send(self, client: httpx.Client, leader: Callable[[], bool]) -> Answer:
        """Return what the server answers; wait for as long as it is ``leader``.

        One that sleeps keeps its connections: nothing but the service knows that it is away.

        Raises: ServerAway.
        """
        pending: Future[Answer] = Future()
        Thread(target=self._ask, args=(client, pending), name="passed on", daemon=True).start()
        while not wait([pending], _LOOK_S).done:
            if not leader():
                client.close()
                raise ServerAway(self.server, "Another server is about to take over, or has.")
        return pending.result()

    def _ask(self, client: httpx.Client, pending: Future[Answer]) -> None:
        try:
            pending.set_result(self._answered(client))
        except Exception as problem:  # noqa: BLE001 - raised where it is waited for
            pending.set_exception(problem)

    def _sent(self) -> dict[str, str]:
        """Return the client's headers; servers that know one another send no password."""
        headers = {name: self.headers[name] for name in _HEADERS if name in self.headers}
        if self.trace:
            headers[TRACEPARENT] = self.trace
        if self.secret is not None:
            headers.pop("authorization", None)
            headers[HEADER] = self.secret.token(self.method, self.path, str(self.server))
            if self.user:
                headers[USER_HEADER] = quote(self.user)
            if self.address:
                headers[ADDRESS_HEADER] = quote(self.address)
        return headers

    def _answered(self, client: httpx.Client) -> Answer:
        url = f"{self.scheme}://{self.server}{quote(self.path)}"
        try:
            if self.method == "GET":
                answer = client.get(url, headers=self._sent(), timeout=_LOOK_TIMEOUT)
            else:
                body = _marked(self.body)
                answer = client.post(url, content=body, headers=self._sent(), timeout=_TIMEOUT)
        except (httpx.HTTPError, RuntimeError) as problem:  # also of a client that was closed
            raise ServerAway(self.server, str(problem) or type(problem).__name__) from problem
        return Answer(answer.status_code, answer.content, answer.headers.get("content-type", ""))


def _marked(body: bytes) -> bytes:
    """Return a body with the mark that it was passed on."""
    text = from_json(body)  # by the parser that has taken the body here: no other takes all
    text["requestProperties"] = (text.get("requestProperties") or {}) | {PASSED_ON: True}
    return json.dumps(text).encode()


async def from_leader(context: AppContext, request: Request) -> Answer | None:
    """Return what the leader answers to a GET of the request's path; None if this server leads.

    The parameters of the request are left out, so that the leader answers for itself.
    Raises: ServerAway, and NotReady while no server leads.
    """
    if not context.service.is_follower:
        return None
    leader = await context.call(context.service.leader)
    return await pass_on(context, request, leader, request.scope["path"], b"", method="GET")


async def pass_on(
    context: AppContext,
    request: Request,
    server: Server,
    path: str,
    body: bytes,
    *,
    method: Literal["GET", "POST"] = "POST",
) -> Answer:
    """Return what the leader answers to a body, for as long as the client of a request waits.

    Raises: ServerAway.
    """
    service = context.service
    headers, user = request.headers, user_of(request.scope)
    secret, trace, address = service.secret, traceparent(), address_of(request.scope)
    proxy = LeaderProxy(
        server, service.scheme, path, body, headers, secret, user, trace, address, method
    )
    tls = service.tls
    gone = Event()

    def is_awaited() -> bool:
        return service.is_leader(server) and not gone.is_set()

    def ask() -> Answer:
        with httpx.Client(verify=tls or False, trust_env=False) as client:
            return proxy.send(client, is_awaited)

    return await context.pass_on(ask, request.is_disconnected, gone.set)
