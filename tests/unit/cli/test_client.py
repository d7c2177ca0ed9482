from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import ClassVar

import pytest

from ksql.core.errors import NotReady, ServerError
from ksql.core.types import model
from ksql.core.types.schema import Column, Role
from ksql.serving.results import ResultRow
from server.cli.client import (
    Client,
    Event,
    FinalMessage,
    Line,
    Row,
    RowsHeader,
    ServerFailure,
    Unreachable,
    parse_schema,
)
from tests.unit.server.fakes import FakeService, FakeStream, FakeText, created, rows


def events(client: Client) -> list[Event]:
    with client.query("S;", {"p": "1"}, {"v": "2"}) as batches:
        return [event for batch in batches for event in batch]


def collect(client: Client, seen: list[Event]) -> None:
    with client.query("S;", {}, {}) as batches:
        for batch in batches:
            seen += batch


def test_statements(client: Client, service: FakeService) -> None:
    service.answer = [created()]
    entities = client.execute("X;", {"p": "1"}, {"v": "2"}, 5)
    assert entities[0]["@type"] == "currentStatus"
    assert service.calls == [("await", 5), ("X;", {"p": "1"}, {"v": "2"})]
    assert client.info()["ksqlServiceId"] == "default_"
    assert client.close_query("transient_S_1")
    assert not client.close_query("other")


def test_a_query_gives_header_rows_end(client: Client, service: FakeService) -> None:
    batch = [*rows((1, "a")), ResultRow((2, None), tombstone=True)]
    service.stream = lambda: FakeStream([batch], ends_with="Limit Reached")
    assert events(client) == [
        RowsHeader("transient_S_1", (("ID", "INTEGER"), ("NAME", "STRING"))),
        Row([1, "a"], False, '{"row":{"columns":[1,"a"]}}'),
        Row([2, None], True, '{"row":{"columns":[2,null],"tombstone":true}}'),
        FinalMessage("Limit Reached"),
    ]


def test_rows_are_there_as_soon_as_they_are_sent(client: Client, service: FakeService) -> None:
    stream = FakeStream([rows((1, "a,\n]"))])  # then it waits: the row must not wait for the next
    service.stream = lambda: stream
    with client.query("S;", {}, {}) as batches:
        seen: list[Event] = []
        while len(seen) < 2:
            seen += next(batches)
    assert isinstance(seen[1], Row)
    assert stream.ended.wait(5)


def test_no_digit_is_lost(client: Client, service: FakeService) -> None:
    columns = (Column("D", model.Decimal(20, 18)), Column("F", model.DOUBLE))
    values = (Decimal("1.100000000000000001"), 1e300)
    service.stream = lambda: FakeStream([rows(values)], "pull", columns)
    row = events(client)[1]
    assert isinstance(row, Row)
    assert list(map(str, row.values)) == ["1.100000000000000001", "1e+300"]


def test_print_gives_lines(client: Client, service: FakeService) -> None:
    service.stream = lambda: FakeText([["a", "b"], ["c"]])
    assert events(client) == [Line("a"), Line("b"), Line("c")]
    service.stream = lambda: FakeText([["a"], ServerError("gone")])
    with pytest.raises(ServerFailure, match="gone"):
        events(client)


def test_failures_keep_the_servers_words(client: Client, service: FakeService) -> None:
    service.answer = NotReady("starting")
    with pytest.raises(ServerFailure, match="starting") as caught:
        client.execute("X;")
    assert caught.value.code == 50302
    service.stream = NotReady("starting")
    with pytest.raises(ServerFailure, match="starting"):
        events(client)
    service.stream = lambda: FakeStream([rows((1, "a")), ServerError("gone")])
    seen: list[Event] = []
    with pytest.raises(ServerFailure, match="gone"):
        collect(client, seen)
    assert len(seen) == 2


def test_nobody_answers() -> None:
    with closing(Client("http://127.0.0.1:1/")) as client:
        for ask in (client.info, lambda: events(client)):
            with pytest.raises(
                Unreachable, match=r"no answer from the server at http://127\.0\.0\.1:1:"
            ):
                ask()


class _Stranger(http.server.BaseHTTPRequestHandler):
    answer: ClassVar[tuple[int, bytes]] = (200, b"")

    def do_POST(self) -> None:
        status, body = self.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def stranger() -> Iterator[Client]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        with closing(Client(f"http://127.0.0.1:{server.server_port}")) as client:
            yield client
        server.shutdown()
        thread.join()


def test_a_server_that_is_none_of_ours(stranger: Client) -> None:
    _Stranger.answer = (502, b"<html>Bad Gateway</html>")
    with pytest.raises(ServerFailure, match="answered 502: <html>"):
        stranger.execute("X;")
    _Stranger.answer = (200, b'[{"header":{"queryId":null,"schema":""}},\n{"row":')
    with pytest.raises(Unreachable, match="broke off"):
        events(stranger)
    _Stranger.answer = (200, json.dumps([{"row": {"strange": 1}}]).encode())
    with pytest.raises(Unreachable, match="unknown part"):
        events(stranger)


def test_parts_of_an_answer_that_a_later_server_adds_are_passed_over(stranger: Client) -> None:
    parts = [{"strange": 1}, {"row": {"columns": [1]}}, {"finalMessage": "a note", "more": 2}]
    _Stranger.answer = (200, json.dumps(parts).encode())
    assert [type(event).__name__ for event in events(stranger)] == ["Row", "FinalMessage"]
    header = {"queryId": None, "schema": "`A` INTEGER", "notes": ["a", "b"], "more": 1}
    _Stranger.answer = (200, json.dumps([{"header": header}]).encode())
    assert events(stranger) == [RowsHeader(None, (("A", "INTEGER"),), ("a", "b"))]


def test_schemas_are_parsed() -> None:
    struct = model.Struct((model.Field("x,y", model.Decimal(4, 2)), model.Field("z", model.BIGINT)))
    columns = (
        Column("A `b`, c", model.INTEGER, Role.KEY),
        Column("S", struct),
        Column("M", model.Map(model.STRING, model.Array(model.BYTES))),
    )
    assert parse_schema(", ".join(map(str, columns))) == (
        ("A `b`, c", "INTEGER"),
        ("S", "STRUCT<`x,y` DECIMAL(4, 2), `z` BIGINT>"),
        ("M", "MAP<STRING, ARRAY<BYTES>>"),
    )
