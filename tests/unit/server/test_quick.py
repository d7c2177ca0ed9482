"""Queries with few rows: ended when they have begun, or waited for in one step."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from fastapi.responses import StreamingResponse

from ksql.cluster.replicas.failover import Freshness
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import ParseError, ServerError
from ksql.core.types import model
from ksql.core.types.schema import Column
from ksql.serving.results import ResultRow
from ksql.views.materialized_view import TableMoves
from ksql.views.stores.base import StoreClosed
from server.answers.row_encoders import Delimited
from server.answers.streaming import buffered_response
from server.app import create_app
from server.context import BufferedResult
from server.io_budget import IoBudget
from server.wire import DELIMITED, JSON, V1_JSON, V1_PROTOBUF
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.unit.server.test_query import DATA, SEEN, query
from tests.unit.server.web import ask

# --- queries that have ended when they have begun


@dataclass(eq=False)
class QuickStream(FakeStream):
    """A look-up; says in which threads it was used."""

    quick: bool = True
    threads: set[str] = field(default_factory=set)
    sizes: list[int] = field(default_factory=list)

    def batches(self) -> Iterator[list[ResultRow]]:
        self.threads.add(threading.current_thread().name.rstrip("_0123456789"))
        yield from super().batches()

    def close(self) -> None:
        self.threads.add(threading.current_thread().name.rstrip("_0123456789"))
        super().close()

    def sent(self, size_bytes: int) -> None:
        self.sizes.append(size_bytes)


@pytest.mark.parametrize("accept", [DELIMITED, JSON, V1_JSON, V1_PROTOBUF])
@pytest.mark.parametrize("path", ["/query-stream", "/query"])
def test_a_quick_query_is_answered_in_one_piece(accept: str, path: str) -> None:
    given = [DATA, rows((3, "c"))]
    quick = QuickStream(given, "pull", ends_with="Limit Reached")
    slow = FakeStream(given, "pull", ends_with="Limit Reached")
    answer, expected = query(quick, accept, path), query(slow, accept, path)
    assert (answer.content, answer.status_code) == (expected.content, 200)
    assert answer.headers["content-type"] == expected.headers["content-type"]
    assert answer.headers["content-length"] == str(len(answer.content))
    assert (quick.threads, quick.sizes) == ({"statement"}, [len(answer.content)])


def test_a_look_up_whose_store_was_closed_meanwhile_is_made_again() -> None:
    """As when STORE_TYPE changes: the new store has the rows."""
    starts = itertools.count()

    def started() -> QuickStream:
        closed = TableMoves(StoreClosed("/var/lib/0"))
        return QuickStream([closed] if next(starts) < 2 else [DATA], "pull")

    body = {"sql": "SELECT;"}
    answer = ask(FakeService(stream=started), "POST", "/query-stream", json=body)
    assert answer.status_code == 200
    assert '[1,"a"]' in answer.text
    assert next(starts) == 3


@dataclass(eq=False)
class BriefStream(QuickStream):
    """A look-up at another server, or with more to say than rows."""

    quick: bool = False
    brief: bool = True
    dated: bool = False
    replicas: list[Freshness] | Exception = field(default_factory=list)

    @property
    def freshness(self) -> list[Freshness]:
        self.threads.add(threading.current_thread().name.rstrip("_0123456789"))
        if isinstance(self.replicas, Exception):
            raise self.replicas
        return self.replicas


COPY = Freshness(table="T", partition=0, host="h:1", status=ReplicaStatus(state="RUNNING"))


@pytest.mark.parametrize("accept", [DELIMITED, JSON, V1_JSON, V1_PROTOBUF])
@pytest.mark.parametrize("replicas", [None, [COPY], ServerError("Kafka is away")])
def test_a_brief_query_is_waited_for_in_one_step(accept: str, replicas: Any) -> None:
    given = [DATA, [], rows((3, "c"))]
    more: dict[str, Any] = {
        "dated": replicas is not None,
        "replicas": replicas,
        "token": lambda: SEEN,
    }
    brief = BriefStream(given, "pull", ends_with="Limit Reached", **more)
    slow = BriefStream(given, "pull", ends_with="Limit Reached", brief=False, **more)
    answer, expected = query(brief, accept), query(slow, accept)
    assert (answer.content, answer.status_code) == (expected.content, 200)
    assert answer.headers["content-type"] == expected.headers["content-type"]
    assert "content-length" in answer.headers
    assert (brief.threads, brief.sizes) == ({"stream"}, [len(answer.content)])


def test_a_brief_query_that_fails_is_closed() -> None:
    stream = BriefStream([DATA, ServerError("gone")], "pull")
    answer = query(stream)
    assert (answer.status_code, answer.json()["message"]) == (500, "gone")
    assert stream.ended.is_set()


def test_a_brief_query_whose_columns_cannot_be_written_is_closed() -> None:
    column = Column("ID", model.DOUBLE), Column("ID", model.DOUBLE)
    stream = BriefStream([DATA], "pull", columns=column)
    assert query(stream, V1_PROTOBUF).status_code >= 400
    assert stream.ended.wait(5)


def test_a_brief_query_that_is_cut_off_when_the_server_ends_is_no_answer() -> None:
    begun = threading.Event()

    @dataclass(eq=False)
    class Waiting(BriefStream):
        def batches(self) -> Iterator[list[ResultRow]]:
            begun.set()
            assert self.ended.wait(10)
            yield from ()

    stream = Waiting([], "pull")

    async def asking() -> Any:
        app = create_app(FakeService(stream=lambda: stream))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = asyncio.ensure_future(client.post("/query-stream", json={"sql": "SELECT;"}))
            await asyncio.to_thread(begun.wait, 10)
            app.state.context.shut()
            await app.state.context.drain(0)
            response = await answer
        app.state.context.release()
        return response

    result = asyncio.run(asking())
    assert (result.status_code, result.json()["error_code"]) == (503, 50303)


def test_a_quick_query_that_fails_is_closed() -> None:
    stream = QuickStream([ServerError("gone")], "pull")
    answer = query(stream)
    assert (answer.status_code, answer.json()["message"]) == (500, "gone")


def test_a_query_that_waits_for_nothing_takes_no_other_thread() -> None:
    given = [DATA, rows((3, "c"))]
    ready = QuickStream(given, "pull")
    here = threading.current_thread().name.rstrip("_0123456789")
    answer = ask(FakeService(ready_stream=ready), "POST", "/query-stream", json={"sql": "SELECT;"})
    assert answer.content == query(FakeStream(given, "pull")).content
    assert (ready.threads, ready.sizes) == ({here}, [len(answer.content)])


def test_while_the_disk_is_slow_threads_do_the_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    times, blocks = itertools.count(0, 0.2), itertools.count()  # each look-up takes so long
    io_budget = IoBudget(lambda: next(times), lambda: next(blocks))
    monkeypatch.setattr("server.context.IoBudget", lambda: io_budget)
    ready, later = QuickStream([DATA], "pull"), QuickStream([DATA], "pull")
    service = FakeService(ready_stream=ready, stream=lambda: later)
    here = threading.current_thread().name.rstrip("_0123456789")
    for _ in range(2):
        answer = ask(service, "POST", "/query-stream", json={"sql": "SELECT;"})
        assert answer.content == query(FakeStream([DATA], "pull")).content
    assert (ready.threads, later.threads) == ({here}, {"statement"})


def test_slow_query_is_read_in_threads() -> None:
    ready = QuickStream([DATA], "pull", quick=False)
    answer = ask(FakeService(ready_stream=ready), "POST", "/query-stream", json={"sql": "SELECT;"})
    assert ready.ended.wait(5)
    assert answer.content == query(FakeStream([DATA], "pull")).content
    assert ready.threads == {"stream"}


def test_a_query_that_fails_before_any_thread_is_refused_as_ever() -> None:
    refused = RequestFailed(ParseError("no such thing"), "SELECT;")
    for service in (FakeService(ready_stream=refused), FakeService(stream=refused)):
        answer = ask(service, "POST", "/query", json={"ksql": "SELECT;"})
        assert (answer.status_code, answer.json()["message"]) == (400, "no such thing")


def test_over_http_2_each_line_of_a_quick_query_is_a_frame() -> None:
    whole = BufferedResult.of(QuickStream([DATA], "pull"))

    async def pieces() -> list[bytes]:
        answer = buffered_response(whole, Delimited, DELIMITED, {"http_version": "2"})
        assert isinstance(answer, StreamingResponse)
        return [bytes(piece) async for piece in answer.body_iterator]

    pieces_ = asyncio.run(pieces())
    assert [json.loads(piece) for piece in pieces_[1:]] == [[1, "a"], [2, None]]
    assert all(piece.count(b"\n") == 1 for piece in pieces_)
