"""The end of the server: what runs may end, what does not end is ended."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from ksql.query.pull import TableNotReady
from ksql.query.results import ResultRow
from ksql.statements.answers import RequestFailed
from server.context import STATEMENT_THREADS, Door
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.unit.server.web import serving

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


def drained(door: Door, seconds: float) -> None:
    asyncio.run(door.drain(seconds))


def test_a_pull_query_may_end_when_the_server_does() -> None:
    stream = HeldStream(kind="pull")
    with (
        serving(FakeService(stream=lambda: stream)) as (url, app),
        httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer,
    ):
        text = answer.iter_lines()
        assert [next(text), next(text)][1] == '[1,"a"]'
        app.state.door.shut()
        refused = httpx.post(f"{url}/query-stream", json={"sql": "SELECT;"})
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50303)
        stream.go.set()
        assert list(text) == ['[1,"a"]']
        drained(app.state.door, 30)
        assert app.state.door.running == 0


def test_a_pull_query_that_takes_too_long_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    stream = HeldStream(kind="pull")
    with (
        serving(FakeService(stream=lambda: stream)) as (url, app),
        httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer,
    ):
        text = answer.iter_lines()
        assert [next(text), next(text)][1] == '[1,"a"]'
        app.state.door.shut()
        drained(app.state.door, 0)
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
        app.state.door.shut()
        waiting = threading.Timer(0.2, go.set)
        waiting.start()
        drained(app.state.door, 30)
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
                while filling.refused < many:
                    await asyncio.sleep(0.01)
                other = await client.post(f"{url}/ksql", json={"ksql": "LIST;"})
                assert not any(each.done() for each in waiting)
                filling.full.set()
                return [other, *await asyncio.gather(*waiting)]

        other, *answers = asyncio.run(talk())
        assert app.state.door.running == 0
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
        while not filling.refused:
            time.sleep(0.01)
        app.state.door.shut()
        assert sent.result(30).json()["error_code"] == 50303
        drained(app.state.door, 30)
