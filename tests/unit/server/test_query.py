from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import ParseError, ServerError
from ksql.core.token import TOKEN, Token, TokenScope
from ksql.core.types import model
from ksql.core.types.schema import Column, Role
from ksql.serving.results import ResultRow
from server.wire import DELIMITED, JSON, V1_JSON, V1_PROTOBUF
from tests.unit.server.fakes import FakeService, FakeStream, FakeText, rows
from tests.unit.server.web import ask, serving
from tests.waits import await_true

DATA = rows((1, "a"), (2, None))
SEEN = Token().with_({("t", 0): 9})


def query(
    stream: FakeStream | FakeText, accept: str = "*/*", path: str = "/query-stream"
) -> httpx.Response:
    body = {"sql": "SELECT;", "ksql": "SELECT;"}
    service = FakeService(stream=lambda: stream)
    answer = ask(service, "POST", path, json=body, headers={"accept": accept})
    assert stream.ended.wait(5)
    return answer


def lines(answer: httpx.Response) -> list[Any]:
    return [json.loads(line) for line in answer.text.splitlines()]


def test_delimited_is_the_default() -> None:
    answer = query(FakeStream([DATA, rows((3, "c"))], "pull", query_id=None))
    assert answer.headers["content-type"] == DELIMITED
    assert lines(answer) == [
        {"queryId": None, "columnNames": ["ID", "NAME"], "columnTypes": ["INTEGER", "STRING"]},
        [1, "a"],
        [2, None],
        [3, "c"],
    ]


def test_tombstones_are_dropped_except_in_streamed_rows() -> None:
    batch = [*DATA, ResultRow((1, None), tombstone=True)]
    stream = FakeStream([batch], ends_with="Limit Reached")
    assert lines(query(stream))[1:] == [[1, "a"], [2, None]]
    stream = FakeStream([batch], ends_with="Limit Reached")
    answer = query(stream, V1_JSON)
    assert answer.headers["content-type"] == V1_JSON
    assert answer.text.splitlines() == [
        '[{"header":{"queryId":"transient_S_1","schema":"`ID` INTEGER, `NAME` STRING"}},',
        '{"row":{"columns":[1,"a"]}},',
        '{"row":{"columns":[2,null]}},',
        '{"row":{"columns":[1,null],"tombstone":true}},',
        '{"finalMessage":"Limit Reached"}]',
    ]


def test_tombstones_that_are_wanted_are_marked_by_one_more_column() -> None:
    batch = [*DATA, ResultRow((1, None), tombstone=True)]
    stream = FakeStream([batch], ends_with="Limit Reached", marks_deletes=True)
    assert lines(query(stream)) == [
        {
            "queryId": "transient_S_1",
            "columnNames": ["ID", "NAME", "ROWDELETED"],
            "columnTypes": ["INTEGER", "STRING", "BOOLEAN"],
        },
        [1, "a", False],
        [2, None, False],
        [1, None, True],
    ]


@pytest.mark.parametrize(
    ("path", "accept", "asks_tombstones"),
    [
        ("/query-stream", "*/*", False),
        ("/query-stream", JSON, False),
        ("/query-stream", V1_JSON, True),
        ("/query-stream", V1_PROTOBUF, True),
        ("/query", "*/*", True),
        ("/query", DELIMITED, False),
    ],
)
def test_a_form_without_tombstones_does_not_ask_for_them(
    path: str, accept: str, asks_tombstones: bool
) -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], ends_with="Limit Reached"))
    body = {"sql": "SELECT;", "ksql": "SELECT;"}
    ask(service, "POST", path, json=body, headers={"accept": accept})
    assert service.tombstones == [asks_tombstones]


@pytest.mark.parametrize("accept", [DELIMITED, JSON, V1_JSON])
def test_notes_on_an_answer_are_in_the_header(accept: str) -> None:
    notes: list[str] = []

    def reading() -> list[ResultRow]:
        notes.append("some are hidden")
        return DATA

    stream = FakeStream(_Once(reading), "pull", notes=lambda: notes)
    answer = query(stream, accept)
    header, *data = lines(answer) if accept == DELIMITED else answer.json()
    if accept == V1_JSON:
        header, data = header["header"], [each["row"]["columns"] for each in data]
    assert (header["notes"], data) == (["some are hidden"], [[1, "a"], [2, None]])
    assert "notes" not in query(FakeStream([DATA], "pull"), accept).text


@pytest.mark.parametrize("accept", [DELIMITED, JSON, V1_JSON])
def test_notes_that_later_rows_bring_are_the_final_message_where_there_is_one(accept: str) -> None:
    notes: list[str] = []

    def later() -> list[ResultRow]:
        notes.append("more are hidden")
        return []

    stream = FakeStream(_Once(later, DATA), "pull", notes=lambda: list(notes))
    text = query(stream, accept).text
    assert ('{"finalMessage":"more are hidden"}' in text) is (accept == V1_JSON)
    assert "notes" not in text


class _Once(Sequence[list[ResultRow]]):
    """A batch that is made when it is read, behind others."""

    def __init__(self, make_rows: Callable[[], list[ResultRow]], *before: list[ResultRow]) -> None:
        self._make_rows = make_rows
        self._before = before

    def __len__(self) -> int:
        return len(self._before) + 1

    def __getitem__(self, at: Any) -> Any:
        if at > len(self._before):
            raise IndexError
        return self._make_rows() if at == len(self._before) else self._before[at]


def test_empty_batches_come_before_the_status_and_between_rows() -> None:
    answer = query(FakeStream([[], [], DATA, [], rows((3, "c")), []], "pull"))
    assert [line[0] for line in lines(answer)[1:]] == [1, 2, 3]
    answer = query(FakeStream([[], [], ServerError("no room")], "pull"))
    assert (answer.status_code, answer.json()["message"]) == (500, "no room")


def test_a_pull_query_over_a_stream_says_that_it_has_read_all_of_it() -> None:
    stream = FakeStream([DATA], "pull", ends_with="Query Completed")
    assert query(stream, V1_JSON).json()[-1] == {"finalMessage": "Query Completed"}
    assert query(FakeStream([DATA], "pull"), V1_JSON).json()[-1] == {"row": {"columns": [2, None]}}


@pytest.mark.parametrize(
    ("path", "accept", "shown"),
    [
        ("/query-stream", DELIMITED, {"consistencyToken": SEEN.text()}),
        ("/query-stream", JSON, {"consistencyToken": SEEN.text()}),
        ("/query-stream", V1_JSON, {"consistencyToken": {"consistencyToken": SEEN.text()}}),
        ("/query", V1_JSON, {"consistencyToken": {"consistencyToken": SEEN.text()}}),
        ("/query", DELIMITED, {"consistencyToken": SEEN.text()}),
    ],
)
def test_a_pull_query_about_tokens_ends_with_one(path: str, accept: str, shown: Any) -> None:
    asking = Token().with_({("t", 0): 2})
    body = {"sql": "SELECT;", "ksql": "SELECT;", "requestProperties": {TOKEN: asking.text()}}
    service = FakeService(stream=lambda: FakeStream([DATA], "pull", token=lambda: SEEN))
    answer = ask(service, "POST", path, json=body, headers={"accept": accept})
    elements = lines(answer) if accept == DELIMITED else answer.json()
    assert elements[-1] == shown
    assert len(elements) == 4
    assert service.caller is not None
    assert service.caller.token == asking


@pytest.mark.parametrize("path", ["/query-stream", "/query", "/ksql"])
@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("x", "cannot be read"),
        (Token(scope=TokenScope("c", "other_")).text(), "given by another service"),
    ],
)
def test_a_token_that_is_none_or_of_another_service_is_refused(
    path: str, token: str, says: str
) -> None:
    body = {"sql": "SELECT;", "ksql": "SELECT;", "requestProperties": {TOKEN: token}}
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    answer = ask(service, "POST", path, json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
    assert says in answer.json()["message"]
    assert service.calls == []


def test_an_answer_that_fails_has_no_token() -> None:
    stream = FakeStream([DATA, ServerError("gone")], "pull", token=lambda: SEEN)
    *_, last = lines(query(stream))
    assert last["message"] == "gone"


def test_a_json_array_holds_the_same_elements() -> None:
    elements = query(FakeStream([DATA], "pull"), JSON).json()
    assert elements[1:] == [[1, "a"], [2, None]]
    assert elements[0]["columnNames"] == ["ID", "NAME"]


def test_the_older_endpoint_answers_with_streamed_rows() -> None:
    for accept in ("*/*", JSON):
        elements = query(FakeStream([DATA], "pull", query_id="query_1"), accept, "/query").json()
        schema = "`ID` INTEGER KEY, `NAME` STRING"
        assert elements[0] == {"header": {"queryId": "query_1", "schema": schema}}
        assert elements[-1] == {"row": {"columns": [2, None]}}
    assert lines(query(FakeStream([DATA], "pull"), DELIMITED, "/query"))[1] == [1, "a"]


PROTO_COLUMNS = (
    Column("ID", model.INTEGER, Role.KEY),
    Column("NAME", model.STRING),
    Column("M", model.Map(model.STRING, model.INTEGER)),
)


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_rows_in_protobuf(path: str) -> None:
    stream = FakeStream(
        [rows((1, "a", {"k": 0}), (0, None, None)), [ResultRow((2, None, None), tombstone=True)]],
        "pull",
        PROTO_COLUMNS,
        "query_1",
        ends_with="Limit Reached",
    )
    answer = query(stream, V1_PROTOBUF, path)
    assert answer.headers["content-type"] == V1_PROTOBUF
    header, *messages = answer.json()
    schema = """syntax = "proto3";

message ConnectDefault1 {
  int32 ID = 1;
  string NAME = 2;
  repeated ConnectDefault2Entry M = 3;

  message ConnectDefault2Entry {
    string key = 1;
    int32 value = 2;
  }
}
"""
    columns = "`ID` INTEGER KEY, `NAME` STRING, `M` MAP<STRING, INTEGER>"
    assert header == {"header": {"queryId": "query_1", "schema": columns, "protoSchema": schema}}
    first = base64.b64decode(messages[0]["row"]["protobufBytes"])
    assert first == bytes.fromhex("0801 120161 1a05 0a016b 1000")
    assert messages[1:] == [
        {"row": {"protobufBytes": ""}},
        {"row": {"protobufBytes": "CAI=", "tombstone": True}},
        {"finalMessage": "Limit Reached"},
    ]


def test_columns_that_protobuf_cannot_hold_are_a_statements_error() -> None:
    column = Column("A", model.Array(model.Array(model.INTEGER)))
    answer = query(FakeStream([], "pull", (column,)), V1_PROTOBUF)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40001)
    assert "not compatible with Protobuf" in answer.json()["message"]


def test_an_error_after_the_header_is_one_more_element() -> None:
    error = ServerError("the source is gone")
    body = {"@type": "generic_error", "error_code": 50000, "message": "the source is gone"}
    assert lines(query(FakeStream([DATA, error])))[-1] == body
    assert query(FakeStream([DATA, error]), JSON).json()[-1] == body
    assert query(FakeStream([DATA, error]), V1_JSON).json()[-1] == {"errorMessage": body}


def test_behind_an_error_there_is_no_final_message() -> None:
    """A query that was closed, as at the server's end, says of itself that it has completed."""
    body = {"@type": "generic_error", "error_code": 50000, "message": "the source is gone"}
    items = [DATA, ServerError("the source is gone")]
    answer = query(FakeStream(items, final_message="Query Completed"), V1_JSON)
    assert answer.json()[-1] == {"errorMessage": body}


def test_a_defect_in_a_stream_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    answer = query(FakeStream([DATA, ZeroDivisionError("secret")]))
    assert lines(answer)[-1]["error_code"] == 50000
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_a_pull_query_that_fails_at_once_fails_with_a_status() -> None:
    answer = query(FakeStream([ServerError("no host")], "pull"))
    assert (answer.status_code, answer.json()["message"]) == (500, "no host")


def test_an_error_before_the_query_runs() -> None:
    service = FakeService(stream=RequestFailed(ParseError("line 1:1: no"), "SELEC;"))
    answer = ask(service, "POST", "/query-stream", json={"sql": "SELEC;"})
    assert answer.status_code == 400
    assert answer.json()["statementText"] == "SELEC;"
    assert ask(service, "POST", "/query-stream", json={"ksql": "x"}).json()["error_code"] == 40000


def test_the_two_bodies_name_properties_differently() -> None:
    service = FakeService(stream=lambda: FakeStream([], "pull"))
    body = {
        "sql": "S",
        "ksql": "K",
        "properties": {"a": 1},
        "streamsProperties": {"b": 2},
        "sessionVariables": {"v": "w"},
    }
    ask(service, "POST", "/query-stream", json=body)
    ask(service, "POST", "/query", json=body)
    assert service.calls == [("S", {"a": "1"}, {"v": "w"}), ("K", {"b": "2"}, {"v": "w"})]


def test_print_is_plain_text() -> None:
    answer = query(FakeText([["Key format: JSON", "row 1"], [], ["row 2"]]))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "Key format: JSON\nrow 1\nrow 2\n"
    answer = query(FakeText([["row 1"], ServerError("gone")]), V1_JSON, "/query")
    assert answer.text.splitlines()[0] == "row 1"
    assert json.loads(answer.text.splitlines()[1])["message"] == "gone"


def test_close_query() -> None:
    service = FakeService()
    answer = ask(service, "POST", "/close-query", json={"queryId": "transient_S_1"})
    assert (answer.status_code, answer.content) == (200, b"")
    answer = ask(service, "POST", "/close-query", json={"queryId": "x"})
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)


# --- over a real socket --------------------------------------------------------------------------


class Searching(FakeStream):
    """A pull query that finds nothing, for as long as anybody waits."""

    def batches(self) -> Iterator[list[ResultRow]]:
        while not self.ended.wait(0.01):
            yield []


def test_a_client_that_leaves_before_the_first_row_ends_a_pull_query() -> None:
    stream = Searching(kind="pull")
    with serving(FakeService(stream=lambda: stream)) as (url, app):
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 5) as client:
            body = b'{"sql": "SELECT;"}'
            client.sendall(
                b"POST /query-stream HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            await_true("the query runs", lambda: app.state.context.running)
        assert stream.ended.wait(5)


class Scanning(FakeStream):
    """A pull query with rows without end, and chunks without rows between them."""

    def batches(self) -> Iterator[list[ResultRow]]:
        while not self.ended.is_set():
            yield DATA
            yield []


def test_a_client_that_leaves_in_mid_scan_ends_a_pull_query() -> None:
    stream = Scanning(kind="pull")
    with serving(FakeService(stream=lambda: stream)) as (url, _app):
        with httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer:
            assert next(answer.iter_bytes())
        assert stream.ended.wait(5)


def test_the_header_comes_before_any_row_and_a_client_that_leaves_ends_the_query() -> None:
    stream = FakeStream()
    with serving(FakeService(stream=lambda: stream)) as (url, app):
        with httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer:
            texts = answer.iter_lines()
            assert json.loads(next(texts))["queryId"] == "transient_S_1"
            assert not stream.ended.is_set()
        assert stream.ended.wait(5)
        assert app.state.context.running == 0


@pytest.mark.slow
def test_many_push_queries_run_side_by_side() -> None:
    streams: list[FakeStream] = []
    lock = threading.Lock()

    def opened() -> FakeStream:
        with lock:
            streams.append(FakeStream([DATA]))
            return streams[-1]

    with serving(FakeService(stream=opened)) as (url, _), httpx.Client() as client:
        limits = httpx.Limits(max_connections=None)
        with httpx.Client(limits=limits) as crowd:
            answers = [
                crowd.send(
                    crowd.build_request("POST", f"{url}/query-stream", json={"sql": "S;"}),
                    stream=True,
                )
                for _ in range(50)
            ]
            texts = [answer.iter_lines() for answer in answers]
            assert all(next(text).startswith('{"queryId"') for text in texts)
            assert all(next(text) == '[1,"a"]' for text in texts)
            assert client.get(f"{url}/info").status_code == 200
            for answer in answers:
                answer.close()
        assert all(stream.ended.wait(5) for stream in streams)


def test_the_end_of_the_server_ends_the_queries_with_a_word() -> None:
    stream = FakeStream([DATA])
    with (
        serving(FakeService(stream=lambda: stream)) as (url, app),
        httpx.stream("POST", f"{url}/query-stream", json={"sql": "SELECT;"}) as answer,
    ):
        text = answer.iter_lines()
        assert [next(text) for _ in range(3)][1] == '[1,"a"]'
        app.state.context.shut()
        assert json.loads(list(text)[-1])["error_code"] == 50303
