"""What an answer to a query holds besides its rows, and what counts it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.errors import TooManyRequests
from ksql.serving.limits import PULL_BANDWIDTH, LimitedStream, Limits
from ksql.serving.results import ResultRow
from server.answers.pieces import PIECE_BYTES, Pieces, in_turns
from server.app import create_app
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.unit.server.web import ask

DATA = rows((1, "a"))


def response_of(service: FakeService) -> httpx.Response:
    return ask(service, "POST", "/query-stream", json={"sql": "SELECT;"})


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
@pytest.mark.parametrize("value", [True, "true", "TRUE"])
def test_the_server_of_a_row_is_named_on_request(path: str, value: object) -> None:
    body = {"ksql": "S;", "sql": "S;", "requestProperties": {"request.ksql.debug.request": value}}
    accept = {"accept": "application/vnd.ksql.v1+json"}
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    document = ask(service, "POST", path, json=body, headers=accept).json()
    host = {"host": "127.0.0.1", "port": 8088}
    assert document[1:] == [{"row": {"columns": [1, "a"]}, "sourceHost": host}]


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("push", {"request.ksql.debug.request": True}),
        ("pull", {"request.ksql.debug.request": False, "request.ksql.other": 1}),
        ("pull", None),
    ],
)
def test_it_is_named_in_answers_to_pull_queries_only(kind: Any, properties: object) -> None:
    stream = FakeStream([DATA], kind, ends_with="Limit Reached")
    body = {"ksql": "S;", "requestProperties": properties}
    document = ask(FakeService(stream=lambda: stream), "POST", "/query", json=body).json()
    assert document[1] == {"row": {"columns": [1, "a"]}}


def test_the_server_of_a_row_may_be_another_one() -> None:
    @dataclass(eq=False)
    class Routed(FakeStream):
        at: int = 0

        def batches(self) -> Iterator[list[ResultRow]]:
            for self.at, batch in enumerate(super().batches()):
                yield batch

        def host(self) -> str:
            return ("a:1", "[::1]:2", "")[self.at]

    body = {"ksql": "S;", "requestProperties": {"request.ksql.debug.request": True}}
    stream = Routed([DATA, DATA, DATA], "pull")
    document = ask(FakeService(stream=lambda: stream), "POST", "/query", json=body).json()
    hosts = [each["sourceHost"] for each in document[1:]]
    assert hosts == [
        {"host": "a", "port": 1},
        {"host": "::1", "port": 2},
        {"host": "127.0.0.1", "port": 8088},
    ]


def test_a_query_waits_for_a_command() -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    ask(service, "POST", "/query", json={"ksql": "S;", "commandSequenceNumber": 7})
    assert service.calls == [("await", 7), ("S;", {}, {})]


def test_a_limit_that_is_reached_is_too_many_requests() -> None:
    limit = RequestFailed(TooManyRequests("Host is at rate limit"), "SELECT;")
    answer = response_of(FakeService(stream=limit))
    assert (answer.status_code, answer.json()) == (
        429,
        {"@type": "generic_error", "error_code": 42900, "message": "Host is at rate limit"},
    )


def encoded(some: Sequence[ResultRow]) -> bytes:
    return b"".join(str(row.values[1]).encode() for row in some)


@pytest.mark.parametrize("size", [1, 1000, 1_000_000])
def test_rows_come_in_pieces_of_some_size(size: int) -> None:
    some = rows(*((n, "x" * size) for n in range(20_000_000 // size // 10)))
    pieces = Pieces(encoded)
    first = list(pieces.of(some, b"head"))
    again = list(pieces.of(some))
    assert b"".join(first) == b"head" + encoded(some)
    assert b"".join(again) == encoded(some)
    longest = max(map(len, again))
    assert longest <= max(2 * PIECE_BYTES, size)
    assert len(again) <= 2 + 2 * len(encoded(some)) // min(max(PIECE_BYTES, size), longest)


def test_rows_without_a_text_are_no_piece() -> None:
    pieces = Pieces(lambda _rows: b"")
    assert list(pieces.of(DATA * 1000)) == []
    assert list(pieces.of((), b"head")) == [b"head"]


def test_what_is_sent_at_once_leaves_others_their_turns() -> None:
    async def run() -> tuple[int, int]:
        times = itertools.count(0.0, 0.0006)  # per piece

        async def source() -> AsyncIterator[int]:
            for number in range(100):
                yield number

        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        taken = [number async for number in in_turns(source(), lambda: next(times))]
        beside.cancel()
        return len(taken), turns

    taken, turns = asyncio.run(run())
    assert taken == 100
    assert turns > 30


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_a_large_batch_is_sent_in_pieces(path: str) -> None:
    wide = rows(*((n, "x" * 10_000) for n in range(1_000)))
    stream = FakeStream([wide], "push", ends_with="Limit Reached")
    sizes: list[int] = []

    async def run() -> None:
        app = create_app(FakeService(stream=lambda: stream))
        body = orjson.dumps({"ksql": "S;", "sql": "S;"})
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        gone = asyncio.Event()

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sizes.append(len(message.get("body", b"")))

        head = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": head,
            "server": ("localhost", 1),
            "client": ("127.0.0.1", 2),
            "state": {},
        }
        try:
            await app(scope, receive, send)
        finally:
            app.state.context.release()

    asyncio.run(run())
    assert sum(sizes) > 10_000_000
    assert max(sizes) < 2 * PIECE_BYTES


def test_the_bytes_of_an_answer_count() -> None:
    limits = Limits(Settings({PULL_BANDWIDTH: "1"}), lambda: 0)
    wide = [rows((1, "x" * 524_288))]

    def start() -> LimitedStream:
        return limits.pull(lambda: FakeStream(wide, "pull"))

    for _ in range(2):
        assert response_of(FakeService(stream=start)).status_code == 200
    with pytest.raises(TooManyRequests):
        start()
