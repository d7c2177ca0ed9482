"""One request to the application as a text, and its answer as another."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI

WEBSOCKET = "WS"
_SHOWN = ("content-type", "location", "allow")
_PASSING = re.compile(r"((?:transient_\w+|query)_)\d+")
"""The ids of queries of clients end in a random number, or in the time."""


@dataclass
class Exchange:
    """A request: ``METHOD path`` on the first line, then headers, then the body.

    The method ``WS`` opens a websocket and reads it to its end.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, text: str) -> Exchange:
        lines = [line for line in text.split("\n") if not line.startswith("--")]
        method, path = lines[0].split(" ", 1)
        headers: dict[str, str] = {}
        rest = lines[1:]
        while rest and rest[0][:1].isupper():
            name, _, value = rest.pop(0).partition(": ")
            headers[name] = value
        return cls(method, path, headers, "\n".join(rest).encode())

    def run(self, app: FastAPI) -> str:
        """The answer: its status and headers, then its body line by line."""
        if self.method == WEBSOCKET:
            shown = asyncio.run(_websocket(app, self.path, self.headers))
        else:
            answer = asyncio.run(self._ask(app))
            headers = [answer.headers[name] for name in _SHOWN if name in answer.headers]
            shown = [" ".join([str(answer.status_code), *headers]), *_lines(answer)]
        return _PASSING.sub(r"\1N", "\n".join(shown))

    async def _ask(self, app: FastAPI) -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(
                self.method, self.path, headers=self.headers, content=self.body
            )


def _lines(answer: httpx.Response) -> list[str]:
    """The body to the letter; JSON on one line is indented, frames are in hex.

    Of the description only its paths are shown, of its page nothing.
    """
    if answer.headers.get("content-type") == "application/octet-stream":
        return [answer.content.hex()]
    if answer.headers.get("content-type", "").startswith("text/html"):
        return []
    text = answer.text
    try:
        parsed = json.loads(text)
    except ValueError:
        return text.splitlines()
    if json.dumps(parsed, separators=(",", ":"), ensure_ascii=False) != text:
        return text.splitlines()
    if answer.request.url.path == "/openapi.json":
        parsed = {path: list(methods) for path, methods in parsed["paths"].items()}
    return json.dumps(parsed, indent=1, ensure_ascii=False).split("\n")


async def _websocket(app: FastAPI, target: str, headers: dict[str, str]) -> list[str]:
    url = urlsplit(target)
    events: list[str] = []
    ended = asyncio.Event()
    opening = [{"type": "websocket.connect"}]

    async def receive() -> Mapping[str, object]:
        if opening:
            return opening.pop()
        await ended.wait()
        return {"type": "websocket.disconnect", "code": 1005}

    async def send(message: dict[str, object]) -> None:
        match message["type"]:
            case "websocket.send":
                events.append(f"frame {message['text']}")
            case "websocket.close":
                events.append(f"close {message['code']} {message['reason']}")
                ended.set()
            case "websocket.http.response.start":
                events.append(f"refused {message['status']}")
            case kind:
                events.append(str(kind))

    named = {"host": "localhost"} | headers
    scope = {
        "type": "websocket",
        "path": url.path,
        "raw_path": url.path.encode(),
        "query_string": url.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "scheme": "ws",
        "root_path": "",
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    await app(scope, receive, send)
    return events
