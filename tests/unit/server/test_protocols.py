"""Every route answers an ordinary request as it answers one that h11 has read, and none a part."""

from __future__ import annotations

import contextlib
import socket
from collections import defaultdict
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from ksql.http import protocol_detect
from ksql.http.fast_http1 import Http1
from server.app import create_app
from tests.unit.http.clients import hosted
from tests.unit.server.fakes import FakeService, FakeStream, created, rows

LIVE = {"/ws/query"}
BODIES: list[dict[str, Any]] = [
    {},
    {"content": b"{"},
    {"json": {}},
    {"json": {"sql": "SELECT;", "ksql": "SELECT;", "queryId": "transient_S_1", "target": "S"}},
    {"json": {"ksql": "SELECT;"}, "headers": {"connection": "close", "accept": "text/html"}},
    {"json": {"sql": "SELECT;"}, "headers": {"accept-encoding": "gzip"}, "params": {"a": "é b"}},
    {"content": [b'{"sql":', b' "SELECT;"}']},
]


def _app() -> FastAPI:
    return create_app(FakeService(answer=[created()], stream=_stream))


def _stream() -> FakeStream:
    return FakeStream([rows((1, "a"), (2, None))], "pull")


def _answers(port: int, paths: list[str]) -> list[Any]:
    answers = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        for path in paths:
            for method in ("GET", "POST", "HEAD", "DELETE"):
                for given in BODIES:
                    answer = client.request(method, path, **given)
                    head = {k: v for k, v in answer.headers.items() if k != "date"}
                    case = (method, path, str(given))
                    answers.append((case, answer.status_code, head, answer.content))
    return answers


@pytest.mark.parametrize("path", ["/query-stream", "/ksql", "/inserts-stream", "/stores/read"])
@pytest.mark.parametrize(
    "part",
    [
        b"Content-Length: 100\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\nno number\r\n",
    ],
)
def test_a_client_that_leaves_in_mid_request_is_no_failure(
    path: str, part: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with hosted(_app()) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + part)
        assert httpx.get(f"http://127.0.0.1:{port}/info").is_success
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_body_that_ends_in_two_ways_is_refused_and_the_connection_closed(order: int) -> None:
    """A proxy before it may have gone by the other: what comes next would be another's request."""
    both = [b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"][::order]
    body = b'd\r\n{"ksql": ";"}\r\n0\r\n\r\nGET /info HTTP/1.1\r\nHost: localhost\r\n\r\n'
    with hosted(_app()) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(
            b"POST /ksql HTTP/1.1\r\nHost: localhost\r\n" + b"".join(both) + b"\r\n" + body
        )
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := client.recv(1 << 16):
                answer += data
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"both Content-Length and Transfer-Encoding" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.slow
def test_all_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    described = sorted(_app().openapi()["paths"].keys() - LIVE)
    paths = [
        *(path.format_map(defaultdict(lambda: "x")) for path in described),
        "/nowhere",
        "/info?x=%2F",
    ]
    with hosted(_app()) as port:
        new = _answers(port, paths)
    monkeypatch.setattr(protocol_detect, "Ordinary", Http1)
    with hosted(_app()) as port:
        old = _answers(port, paths)
    assert len({status for _, status, _, _ in new}) > 3
    for one, other in zip(new, old, strict=True):
        assert one == other
