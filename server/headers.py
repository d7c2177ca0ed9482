"""Headers that the operator wants on every answer: ``response.http.headers.config``.

Source: ksqlDB configuration reference; the form is that of Jetty's HeaderFilter.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from ksql.core import StartError, excerpt

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ksql.core import Settings

CONFIG: Final = "response.http.headers.config"
_RULE = re.compile(r"(set|add|setDate|addDate)\s+([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*)")
_MILLIS = re.compile(r"-?[0-9]{1,15}")


class BadHeaders(StartError):
    """A header that cannot be sent."""

    def __init__(self, part: str) -> None:
        super().__init__(
            f"{CONFIG} has a part that is no header: {excerpt(part)}",
            hint='Example: add X-Content-Type-Options: nosniff, "set Cache-Control: no-cache, '
            'no-store". A part with a comma in it needs double quotes.',
        )


@dataclass(frozen=True, slots=True)
class Header:
    """One header; ``replaces`` the one that an answer has already, ``date``: a time from now."""

    name: bytes
    value: bytes
    replaces: bool
    date: bool = False

    def now(self, clock: Callable[[], float]) -> tuple[bytes, bytes]:
        """Return the header of an answer that is sent now."""
        if not self.date:
            return self.name, self.value
        return self.name, formatdate(clock() + int(self.value) / 1000, usegmt=True).encode()


def configured_headers(settings: Settings) -> tuple[Header, ...]:
    """Return the headers of the configuration.

    Raises: BadHeaders.
    """
    text = settings.text(CONFIG)
    if not text.isprintable():
        raise BadHeaders(text)
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(_header(part) for part in map(str.strip, parts) if part)


def _header(part: str) -> Header:
    match = _RULE.fullmatch(part)
    if match is None or not match[3].isascii() or not match[3].isprintable():
        raise BadHeaders(part)
    action, name, value = match.groups()
    date = action.endswith("Date")
    if date and not _MILLIS.fullmatch(value):
        raise BadHeaders(part)
    return Header(name.lower().encode(), value.encode(), action.startswith("set"), date)


class Headers:
    """An application whose answers have these headers, refusals and errors too."""

    def __init__(
        self, app: ASGIApp, headers: tuple[Header, ...], clock: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._headers = headers
        self._replaced = frozenset(header.name for header in headers if header.replaces)
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to what is sent."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    pair for pair in message.get("headers", ()) if pair[0] not in self._replaced
                ]
                more = [header.now(self._clock) for header in self._headers]
                message = {**message, "headers": [*kept, *more]}
            await send(message)

        await self._app(scope, receive, with_headers)
