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

from ksql.query.results import ResultRow
from server.context import Door
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
