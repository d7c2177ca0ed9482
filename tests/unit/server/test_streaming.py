"""What an answer to a query holds besides its rows, and what counts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.errors import TooManyRequests
from ksql.serving.limits import PULL_BANDWIDTH, LimitedStream, Limits
from ksql.serving.results import ResultRow
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


def test_the_bytes_of_an_answer_count() -> None:
    limits = Limits(Settings({PULL_BANDWIDTH: "1"}), lambda: 0)
    wide = [rows((1, "x" * 524_288))]

    def start() -> LimitedStream:
        return limits.pull(lambda: FakeStream(wide, "pull"))

    for _ in range(2):
        assert response_of(FakeService(stream=start)).status_code == 200
    with pytest.raises(TooManyRequests):
        start()
