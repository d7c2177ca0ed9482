"""The paths that are asked most are answered as FastAPI would answer them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import ParseError
from server.app import create_app
from server.routes import cluster, query, stores
from tests.unit.server.fakes import FakeService, FakeStream, rows

BODY = {"sql": "SELECT;", "ksql": "SELECT;"}
KINDS = [
    "application/json",
    "application/vnd.ksql.v1+json",
    "application/vnd.ksqlapi.delimited.v1",
    "text/html",
    "*/*;q=0",
    "nonsense",
]


MESSAGES: dict[str, dict[str, Any]] = {
    "/heartbeat": {"hostInfo": {"host": "a", "port": 1}, "timestamp": 2},
    "/lag": {"ksqlHost": {"host": "a", "port": 1}, "hostStoreLags": {"updateTimeMs": 1}},
    "/stores/read": {"version": 1, "query": "q", "partition": 0},
}


def _stream() -> FakeStream:
    return FakeStream([rows((1, "a"), (2, None))], "pull")


def _response_of(method: str, path: str, request: dict[str, Any], service: FakeService) -> Any:
    async def ask() -> httpx.Response:
        app = create_app(service)
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://x.localhost") as it:
                return await it.request(method, path, **request)
        finally:
            app.state.context.release()

    answer = asyncio.run(ask())
    return answer.status_code, sorted(answer.headers.items()), answer.content


REQUESTS: list[dict[str, Any]] = [
    {"json": BODY},
    *({"json": BODY, "headers": {"accept": kind}} for kind in KINDS),
    {"json": BODY, "headers": {"accept-encoding": "gzip"}},
    {"json": BODY, "params": {"x": "y"}},
    {"json": {**BODY, "streamsProperties": {"a": 1}, "properties": {"a": [1]}}},
    {"json": {**BODY, "commandSequenceNumber": 3}},
    {"json": {**BODY, "commandSequenceNumber": "x"}},
    {"json": []},
    {"json": {}},
    {"content": b""},
    {"content": b"\xff"},
    {"content": json.dumps(BODY), "headers": {"content-type": "text/plain"}},
    {"content": b" " * 11_000_000},
    {"json": BODY, "headers": {"host": "elsewhere.example"}},
    {"json": BODY, "headers": {"origin": "http://elsewhere.example"}},
]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/query", "/query-stream", "/query/", "//query"])
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: repr(request)[:60])
@pytest.mark.parametrize("good", [True, False])
def test_both_ways_give_the_same_answers(
    monkeypatch: pytest.MonkeyPatch, path: str, request_: dict[str, Any], good: bool
) -> None:
    failed = RequestFailed(ParseError("no such thing"), "SELECT;")

    def service() -> FakeService:
        return FakeService(stream=_stream if good else failed)

    new = _response_of("POST", path, request_, service())
    monkeypatch.setattr(query, "OFTEN", {})
    assert new == _response_of("POST", path, request_, service())


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"])
def test_other_methods_are_refused_as_ever(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    new = _response_of(method, "/query", {}, FakeService())
    monkeypatch.setattr(query, "OFTEN", {})
    assert new == _response_of(method, "/query", {}, FakeService())
    assert new[0] == 405 or method == "post"


@pytest.mark.parametrize("path", MESSAGES)
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: repr(request)[:60])
def test_both_ways_take_the_messages_of_servers(
    monkeypatch: pytest.MonkeyPatch, path: str, request_: dict[str, Any]
) -> None:
    if request_.get("json") == BODY:
        request_ = {**request_, "json": MESSAGES[path]}
    new = _response_of("POST", path, request_, FakeService())
    for module in (cluster, stores):
        monkeypatch.setattr(module, "OFTEN", {})
    assert new == _response_of("POST", path, request_, FakeService())
