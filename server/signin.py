"""HTTP basic authentication before the first route; server-only paths with the servers' secret.

A websocket of a browser cannot send a header: there the credentials may be the URL's parameter
``access_token``.
Source: RFC 7617.

With a secret of the servers, the paths between them are open to nobody else.

A request that shows the secret needs no user: the server that sent it has asked for one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote

import orjson

from ksql.core import FILE, HEADER, KsqlError
from server.errors import body_of, response_of
from server.users import Unauthorized
from server.wire import JSON

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ksql.core import ServerSecret
    from server.users import Users


ONLY_SERVERS: Final = frozenset(
    {"/stores/read", "/stores/processed", "/queries/reports", "/heartbeat", "/lag"}
)
PASSED_ON: Final = frozenset({"/ksql", "/ksql/terminate", "/close-query", "/stores/standings"})
"""What servers ask one another, and users ask servers."""
SHOWN: Final = "ksql.server"
"""The mark in a scope that its request is another server's."""
USER: Final = "ksql.user"
"""The user who has signed in, in the scope of a request."""
USER_HEADER: Final = "ksql-user"
"""The user for whom another server passes a request on; nobody else is believed."""


class ServersOnly(KsqlError):
    """A request for servers by somebody who does not know their secret."""

    code = 40300

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is for the servers of the service only",
            hint=f"Give all servers the same {FILE} and clocks that differ by less than a minute, "
            "and have them name each other by ksql.advertised.listener.",
        )


class InternalAuth:
    """An application whose internal paths are open to servers that know the secret."""

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
            await self._app({**scope, SHOWN: True, USER: _passed_on(scope)}, receive, send)
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


def _passed_on(scope: Scope) -> str:
    """Return the user whose request another server has passed on; empty without one."""
    name = USER_HEADER.encode()
    return next((unquote(v.decode("latin-1")) for k, v in scope["headers"] if k == name), "")


def user_of(scope: Scope) -> str:
    """Return the user who has sent a request; empty where nobody has to sign in."""
    user: str = scope.get(USER, "")
    return user


_SCHEME = b"basic"
_THREADS = 2  # a guess takes a fifth of a second: so many at a time leave room for other work
_TOKEN = "access_token"  # noqa: S105 - a parameter's name


class SignIn:
    """An application that answers its users only."""

    def __init__(self, app: ASGIApp, users: Users) -> None:
        self._app = app
        self._users = users
        self._threads = ThreadPoolExecutor(_THREADS, "password")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it before its body is read."""
        refused = None
        if scope["type"] in ("http", "websocket") and not self._lets_in(scope):
            name, password = credentials(scope) or ("", "")
            refused = await self._refusal(name, password) if name else Unauthorized()
            scope = {**scope, USER: name}
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await self._refuse(refused, scope, send)

    def _lets_in(self, scope: Scope) -> bool:
        """Return whether nobody is asked: the path is open to all, or a server has shown itself."""
        return SHOWN in scope or self._users.is_open(scope["path"])

    async def _refusal(self, name: str, password: str) -> KsqlError | None:
        """Return why a user is not let in; hashes are compared by a few threads, one by one."""
        if not self._users.takes_long(name, password):
            return self._users.refusal(name, password)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._users.refusal, name, password)

    async def _refuse(self, refused: KsqlError, scope: Scope, send: Send) -> None:
        body = orjson.dumps(body_of(refused))
        status = refused.code // 100
        headers = [
            (b"content-type", JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),  # the body, however long, is not waited for
        ]
        if status == 401:
            realm = self._users.realm.replace("\\", "\\\\").replace('"', '\\"')
            headers.append(
                (b"www-authenticate", f'Basic realm="{realm}", charset="UTF-8"'.encode())
            )
        of = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
        if scope["type"] == "websocket" and of not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": refused.message})
            return
        await send({"type": f"{of}.start", "status": status, "headers": headers})
        await send({"type": f"{of}.body", "body": body})


def authorization(scope: Scope) -> str:
    """Return a request's credentials as the header that carries them; empty without any."""
    pair = credentials(scope)
    if pair is None:
        return ""
    return f"Basic {base64.b64encode(':'.join(pair).encode()).decode()}"


def credentials(scope: Scope) -> tuple[str, str] | None:
    """Return the user and password of a request; None without any that can be read."""
    scheme, _, token = next(
        (value for name, value in scope["headers"] if name == b"authorization"), b""
    ).partition(b" ")
    if scheme.lower() != _SCHEME:
        if scope["type"] != "websocket":
            return None
        parameters = parse_qs(scope["query_string"].decode("latin-1"))
        token = parameters.get(_TOKEN, [""])[0].encode("latin-1", "replace")
    try:
        text = base64.b64decode(token.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon and name else None
