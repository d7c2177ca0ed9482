"""The doors between servers: with a secret of theirs, they are open to nobody else.

A request that shows the secret needs no user: the server that sent it has asked for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core.errors import KsqlError
from ksql.core.servertoken import FILE, HEADER
from server.errors import response_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ksql.core.servertoken import ServerSecret

ONLY_SERVERS: Final = frozenset(
    {"/stores/read", "/stores/processed", "/queries/reports", "/heartbeat", "/lag"}
)
PASSED_ON: Final = frozenset({"/ksql", "/ksql/terminate", "/close-query", "/stores/standings"})
"""What servers ask one another, and users ask servers."""
SHOWN: Final = "ksql.server"
"""The mark in a scope that its request is another server's."""


class ServersOnly(KsqlError):
    """A request for servers by somebody who does not know their secret."""

    code = 40300

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is for the servers of the service only",
            hint=f"Give all servers the same {FILE} and clocks that differ by less than a minute, "
            "and have them name each other by ksql.advertised.listener.",
        )


class ServersDoors:
    """An application whose doors for servers are open to those that know the secret."""

    def __init__(self, app: ASGIApp, secret: ServerSecret, own: Callable[[], str]) -> None:
        """Take ``own``: the address by which the others know this server."""
        self._app = app
        self._secret = secret
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Mark a server's request; refuse others where only servers may ask."""
        path = scope.get("path", "")
        if scope["type"] != "http" or (path not in ONLY_SERVERS and path not in PASSED_ON):
            await self._app(scope, receive, send)
        elif self._is_servers(scope):
            await self._app({**scope, SHOWN: True}, receive, send)
        elif path in PASSED_ON:
            await self._app(scope, receive, send)
        else:
            refusal = response_of(ServersOnly(path))
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, send)

    def _is_servers(self, scope: Scope) -> bool:
        name = HEADER.encode()
        shown = [value for key, value in scope["headers"] if key == name]
        if len(shown) != 1:
            return False
        token = shown[0].decode("latin-1")
        return self._secret.accepts(token, scope["method"], scope["path"], self._own())
