"""The end of the server: what runs may end, what does not end is ended."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.serving.results import ResultRow
from ksql.views.materialized_view import TableNotReady
from server.context import STATEMENT_THREADS, AppContext
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.unit.server.web import serving
from tests.waits import await_true, await_true_in_loop

DATA = rows((1, "a"))


@dataclass(eq=False)
class HeldStream(FakeStream):
    """A pull query whose second batch waits for a word."""

    go: threading.Event = field(default_factory=threading.Event)

    def batches(self) -> Iterator[list[ResultRow]]:
        yield DATA
        while not (self.go.wait(0.02) or self.ended.is_set()):
            yield []
        if not self.ended.is_set():
            yield DATA


def drained(context: AppContext, seconds: float) -> None:
    asyncio.run(context.drain(seconds))


def test_a_pull_query_may_end_when_the_server_does() -> None:
    stream = HeldStream(kind="pull")
    with (
        serving(FakeService(stream=lambda: stream)) as (url, app),
        httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer,
    ):
        text = answer.iter_lines()
        assert [next(text), next(text)][1] == '[1,"a"]'
        app.state.context.shut()
        refused = httpx.post(f"{url}/query-stream", json={"sql": "SELECT;"})
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50303)
        stream.go.set()
        assert list(text) == ['[1,"a"]']
        drained(app.state.context, 30)
        assert app.state.context.running == 0


def test_a_pull_query_that_takes_too_long_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    stream = HeldStream(kind="pull")
    with (
        serving(FakeService(stream=lambda: stream)) as (url, app),
        httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer,
    ):
        text = answer.iter_lines()
        assert [next(text), next(text)][1] == '[1,"a"]'
        app.state.context.shut()
        drained(app.state.context, 0)
        assert json.loads(list(text)[-1])["error_code"] == 50303
    [record] = [record for record in caplog.records if record.message == "requests_cut_off"]
    assert (record.__dict__["queries"], record.__dict__["calls"]) == (1, 0)


def test_a_statement_may_end_when_the_server_does() -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(_text: str) -> list[Any]:
        begun.set()
        assert go.wait(30)
        return []

    with serving(FakeService(answer=slow)) as (url, app), ThreadPoolExecutor(1) as pool:
        sent = pool.submit(httpx.post, f"{url}/ksql", json={"ksql": "CREATE;"}, timeout=30)
        assert begun.wait(30)
        app.state.context.shut()
        waiting = threading.Timer(0.2, go.set)
        waiting.start()
        drained(app.state.context, 30)
        assert go.is_set()
        assert sent.result(30).status_code == 200


# --- tables that are not ready


@dataclass
class Filling:
    """A table that answers once it is filled; queries before that are counted."""

    patience_s: float = 60.0
    full: threading.Event = field(default_factory=threading.Event)
    refused: int = 0

    def __call__(self) -> FakeStream:
        if not self.full.is_set():
            self.refused += 1
            trouble = TableNotReady("T", 3, "", self.full.is_set, self.patience_s)
            raise RequestFailed(trouble, "SELECT;")
        return FakeStream([DATA], "pull")


def test_queries_that_wait_for_a_table_leave_the_threads_to_others() -> None:
    filling, many = Filling(), STATEMENT_THREADS + 8
    with serving(FakeService(stream=filling)) as (url, app):

        async def talk() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60, limits=httpx.Limits()) as client:
                waiting = [
                    asyncio.ensure_future(client.post(f"{url}/query-stream", json={"sql": "S;"}))
                    for _ in range(many)
                ]
                await await_true_in_loop("all wait", lambda: filling.refused >= many)
                other = await client.post(f"{url}/ksql", json={"ksql": "LIST;"})
                assert not any(each.done() for each in waiting)
                filling.full.set()
                return [other, *await asyncio.gather(*waiting)]

        other, *answers = asyncio.run(talk())
        assert app.state.context.running == 0
    assert other.status_code == 200
    assert [each.status_code for each in answers] == [200] * many
    assert {each.text.splitlines()[1] for each in answers} == {'[1,"a"]'}


def test_a_table_that_is_not_ready_in_time_is_an_error() -> None:
    filling = Filling(patience_s=0.05)
    with serving(FakeService(stream=filling)) as (url, _):
        answer = httpx.post(f"{url}/query-stream", json={"sql": "SELECT;"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, 50302)
    assert filling.refused == 1


def test_a_server_that_ends_does_not_wait_for_tables() -> None:
    filling = Filling()
    with serving(FakeService(stream=filling)) as (url, app), ThreadPoolExecutor(1) as pool:
        sent = pool.submit(httpx.post, f"{url}/query-stream", json={"sql": "S;"}, timeout=30)
        await_true("it waits for the table", lambda: filling.refused)
        app.state.context.shut()
        assert sent.result(30).json()["error_code"] == 50303
        drained(app.state.context, 30)


# --- requests that wait


@dataclass
class Waiting:
    """A condition that comes true on a word; who asks for it is counted."""

    true: threading.Event = field(default_factory=threading.Event)
    requests: int = 0

    def __call__(self, *_text: str) -> bool:
        self.requests += 1
        return self.true.is_set()

    def answer(self, text: str) -> list[Any] | None:
        return [] if self(text) else None


def test_statements_that_wait_leave_the_threads_to_others() -> None:
    """ASSERT .. TIMEOUT held one for as long as its client said."""
    waiting, many = Waiting(), STATEMENT_THREADS + 8

    def answer(text: str) -> list[Any] | None:
        return waiting.answer(text) if text == "ASSERT;" else []

    with serving(FakeService(answer=answer)) as (url, _):

        async def talk() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60, limits=httpx.Limits()) as client:
                sent = [
                    asyncio.ensure_future(client.post(f"{url}/ksql", json={"ksql": "ASSERT;"}))
                    for _ in range(many)
                ]
                await await_true_in_loop("all wait", lambda: waiting.requests >= 2 * many)
                other = await client.post(f"{url}/ksql", json={"ksql": "LIST;"})
                assert not any(each.done() for each in sent)
                waiting.true.set()
                return [other, *await asyncio.gather(*sent)]

        assert [each.status_code for each in asyncio.run(talk())] == [200] * (many + 1)


def test_a_command_that_is_not_there_yet_holds_no_thread() -> None:
    waiting, many = Waiting(), STATEMENT_THREADS + 8
    body = {"ksql": "LIST;", "commandSequenceNumber": 9}
    with serving(FakeService(caught_up=waiting)) as (url, _):

        async def talk() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60, limits=httpx.Limits()) as client:
                paths = ["/ksql" if n % 2 else "/query" for n in range(many)]
                sent = [asyncio.ensure_future(client.post(url + p, json=body)) for p in paths]
                await await_true_in_loop("all wait", lambda: waiting.requests >= 2 * many)
                other = await client.post(f"{url}/ksql", json={"ksql": "LIST;"})
                assert not any(each.done() for each in sent)
                waiting.true.set()
                return [other, *await asyncio.gather(*sent)]

        statuses = [each.status_code for each in asyncio.run(talk())]
    assert statuses.count(200) == many // 2 + 1  # /query has no query to answer


def test_a_statement_waits_no_longer_than_its_client() -> None:
    waiting = Waiting()
    with serving(FakeService(answer=waiting.answer)) as (url, app):
        with httpx.Client() as client, pytest.raises(httpx.ReadTimeout):
            client.post(f"{url}/ksql", json={"ksql": "ASSERT;"}, timeout=0.3)
        await_true("it", lambda: app.state.context._waiting == 0)


def test_as_many_as_may_wait_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.context.MOST_WAITING", 1)
    waiting = Waiting()
    with serving(FakeService(answer=waiting.answer)) as (url, _), ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.post, f"{url}/ksql", json={"ksql": "A;"}, timeout=30)
        await_true("it", lambda: waiting.requests > 1)
        second = httpx.post(f"{url}/ksql", json={"ksql": "B;"})
        assert (second.status_code, second.json()["error_code"]) == (429, 42900)
        assert "1 requests wait already" in second.json()["message"]
        waiting.true.set()
        assert first.result(30).status_code == 200


def test_a_server_that_ends_does_not_wait_for_assertions() -> None:
    waiting = Waiting()
    with serving(FakeService(answer=waiting.answer)) as (url, app), ThreadPoolExecutor(1) as pool:
        sent = pool.submit(httpx.post, f"{url}/ksql", json={"ksql": "A;"}, timeout=30)
        await_true("it", lambda: waiting.requests > 1)
        app.state.context.shut()
        assert sent.result(30).json()["error_code"] == 50303
        drained(app.state.context, 30)


def test_probes_have_threads_of_their_own() -> None:
    """A probe that waits for statements kills the server that is only busy."""
    go, held = threading.Event(), Waiting()

    def hold(_text: str) -> list[Any]:
        held.requests += 1
        assert go.wait(30)
        return []

    with serving(FakeService(answer=hold)) as (url, _):

        async def talk() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60, limits=httpx.Limits()) as client:
                many = range(STATEMENT_THREADS + 8)
                sent = [
                    asyncio.ensure_future(client.post(f"{url}/ksql", json={"ksql": "S;"}))
                    for _ in many
                ]
                await await_true_in_loop(
                    "all threads are held", lambda: held.requests >= STATEMENT_THREADS
                )
                paths = ("/info", "/healthcheck", "/chc/live", "/chc/ready", "/v1/metadata")
                answers = [await client.get(url + path) for path in paths]
                assert not any(each.done() for each in sent)
                go.set()
                await asyncio.gather(*sent)
                return answers

        assert [each.status_code for each in asyncio.run(talk())] == [200] * 5
