"""HTTP basic authentication before the first route; server-only paths with the servers' secret.

A websocket of a browser cannot send a header: there the credentials may be the URL's parameter
``access_token``.
Source: RFC 7617.

With a secret of the servers, the paths between them are open to nobody else.

A request that shows the secret needs no user: the server that sent it has asked for one.

A user acts with its rights: ``ksql.control.access`` checks them, here for the path, and later for
each statement. Wrong passwords are logged, and slowed down by a throttle.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote

import orjson

from ksql.control.access import ALL, NONE, Grants, NotPermitted, Requester, acting
from ksql.core import FILE, HEADER, KsqlError, excerpt
from server.errors import body_of, response_of
from server.login_throttle import LoginThrottle, TooManyGuesses
from server.paths import HISTORY, ONLY_SERVERS, needs_of
from server.users import Forbidden, Unauthorized, Users
from server.wire import JSON

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ksql.core import ServerSecret


PASSED_ON: Final = frozenset(
    {"/ksql", "/ksql/terminate", "/close-query", "/stores/standings", "/metrics"}
)
"""What servers ask one another, and users ask servers; so are the paths below ``HISTORY``."""
SHOWN: Final = "ksql.server"
"""The mark in a scope that its request is another server's."""
USER: Final = "ksql.user"
"""The user who has signed in, in the scope of a request."""
USER_HEADER: Final = "ksql-user"
"""The user for whom another server passes a request on; nobody else is believed."""
ADDRESS_HEADER: Final = "ksql-address"
"""The address from which that user has sent it; likewise."""
_OF_USERS: Final = frozenset({"/ksql", "/ksql/terminate", "/metrics"})
"""What a server asks for a user only, never for itself."""
AUDIT_LOG: Final = logging.getLogger("ksql.audit")


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
        passed_on = path in PASSED_ON or path.startswith(HISTORY)
        if scope["type"] != "http" or (path not in ONLY_SERVERS and not passed_on):
            await self._app(scope, receive, send)
        elif self._is_servers(scope):
            await self._app({**scope, SHOWN: True, USER: _passed_on(scope)}, receive, send)
        elif passed_on:
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


def _is_of_users(path: str) -> bool:
    return path in _OF_USERS or path.startswith(HISTORY)


def _passed_on(scope: Scope, header: str = USER_HEADER) -> str:
    """Return the user whose request another server has passed on; empty without one."""
    name = header.encode()
    return next((unquote(v.decode("latin-1")) for k, v in scope["headers"] if k == name), "")


def user_of(scope: Scope) -> str:
    """Return the user who has sent a request; empty where nobody has to sign in."""
    user: str = scope.get(USER, "")
    return user


_SCHEME = b"basic"
_THREADS = 2  # a guess takes a fifth of a second: so many at a time leave room for other work
_TOKEN = "access_token"  # noqa: S105 - a parameter's name


class SignIn:
    """An application that answers its users only, each within its rights.

    Without ``users`` it answers all, and only notes who has sent what, if it is ``audited``.
    """

    def __init__(
        self,
        app: ASGIApp,
        users: Users | None,
        *,
        audited: bool = False,
        throttle: LoginThrottle | None = None,
    ) -> None:
        self._app = app
        self._users = users
        self._audited = audited
        self._throttle = throttle or LoginThrottle()
        self._threads = ThreadPoolExecutor(_THREADS, "password")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as its user's, or refuse it before its body is read."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused = None
        if not self._lets_in(scope):
            name, refused = await self._signed_in(scope)
            scope = {**scope, USER: name}
        requester = self._requester(scope)
        if refused is None and not self._is_open(scope):
            refused = _lacking(requester, scope["path"])
        if refused is None:
            with acting(requester):
                await self._app(scope, receive, send)
        else:
            await self._refuse(refused, scope, send)

    def _is_open(self, scope: Scope) -> bool:
        return self._users is None or self._users.is_open(scope["path"])

    def _lets_in(self, scope: Scope) -> bool:
        """Return whether nobody is asked: the path is open to all, or a server has shown itself."""
        return SHOWN in scope or self._is_open(scope)

    async def _signed_in(self, scope: Scope) -> tuple[str, KsqlError | None]:
        """Return the user of a request, and why it is not let in.

        A name and a password count more than a certificate.
        """
        assert self._users is not None  # noqa: S101 - else nobody is asked
        pair = credentials(scope)
        if pair is not None:
            return pair[0], await self._refusal(*pair, scope)
        subject = subject_of(scope)
        name = self._users.certified(subject)
        if name and self._users.admits(name):
            return name, None
        if subject:
            _note_refusal(name, scope, reason="certificate", subject=subject)
        return name, Forbidden() if name else Unauthorized()

    def _requester(self, scope: Scope) -> Requester:
        """Return who asks; nobody where a path is open to all, or a server asks for no user."""
        name, address = user_of(scope), address_of(scope)
        if SHOWN in scope:
            address = _passed_on(scope, ADDRESS_HEADER) or address
        grants = self._grants(scope, name)
        renewed = None
        if self._users is not None and name and SHOWN not in scope:
            renewed = partial(self._users.renewed, name)
        return Requester(name, grants, address, scope["path"], self._audited, renewed)

    def _grants(self, scope: Scope, name: str) -> Grants:
        if self._users is None or self._users.rights is None:
            return ALL
        if name:
            return self._users.grants(name)
        by_itself = SHOWN in scope and not _is_of_users(scope["path"])
        return ALL if by_itself else NONE

    async def _refusal(self, name: str, password: str, scope: Scope) -> KsqlError | None:
        """Return why a user is not let in; hashes are compared by a few threads, one by one."""
        assert self._users is not None  # noqa: S101 - else nobody is asked
        address = address_of(scope)
        waits = self._throttle.refusal(name, address)
        if waits is not None:
            return waits
        if not self._users.takes_long(name, password):
            return self._compared(name, password, scope)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._compared_late, name, password, scope)

    def _compared_late(self, name: str, password: str, scope: Scope) -> KsqlError | None:
        """Compare a password, unless others that came with it have been wrong meanwhile."""
        waits = self._throttle.refusal(name, address_of(scope))
        return self._compared(name, password, scope) if waits is None else waits

    def _compared(self, name: str, password: str, scope: Scope) -> KsqlError | None:
        assert self._users is not None  # noqa: S101 - else nobody is asked
        address = address_of(scope)
        refused = self._users.refusal(name, password)
        if isinstance(refused, Unauthorized):
            unseen = self._throttle.wrong(name, address)
            _note_refusal(name, scope, reason="password", unseen=unseen)
        else:
            self._throttle.right(name, address)
            if refused is not None:
                _note_refusal(name, scope, reason="roles")
        return refused

    async def _refuse(self, refused: KsqlError, scope: Scope, send: Send) -> None:
        body = orjson.dumps(body_of(refused))
        status = refused.code // 100
        headers = [
            (b"content-type", JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),  # the body, however long, is not waited for
        ]
        if isinstance(refused, TooManyGuesses):
            headers.append((b"retry-after", str(refused.wait_s).encode()))
        if status == 401 and self._users is not None and self._users.realm:
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


def _lacking(requester: Requester, path: str) -> NotPermitted | None:
    """Return why a user may not ask for that path; None if it may, or its statements decide."""
    needed = needs_of(path)
    if not needed or requester.grants is ALL:
        return None
    try:
        requester.demand(needed, path)
    except NotPermitted as refused:
        return refused
    return None


def _note_refusal(name: str, scope: Scope, **more: object) -> None:
    """Log who has not been let in; ``unseen`` are the guesses that were not looked at before.

    A stranger decides on name and path: no more than an excerpt of them is kept.
    """
    place = {"user": excerpt(name), "address": address_of(scope), "path": excerpt(scope["path"])}
    AUDIT_LOG.warning("login_refused", extra={**place, **more})


def address_of(scope: Scope) -> str:
    """Return the address of a request's client; empty if it has none."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def subject_of(scope: Scope) -> str:
    """Return the subject of a client's certificate that TLS has verified; empty without one."""
    tls = scope.get("extensions", {}).get("tls", {})
    return str(tls.get("client_cert_name") or "")


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
