from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from ksql.core.token import TOKEN, Token, TokenScope
from server.wire import DELIMITED, JSON
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask, serving

TARGET = b'{"target":"S","properties":{"a":1}}\n'


def insert(text: bytes, accept: str = "*/*") -> tuple[httpx.Response, list[Any]]:
    service = FakeService()
    headers = {"accept": accept}
    answer = ask(service, "POST", "/inserts-stream", content=text, headers=headers)
    return answer, [call[1] for call in service.calls if call[0] == "row"]


def acks(answer: httpx.Response) -> list[Any]:
    return [json.loads(line) for line in answer.text.splitlines()]


def test_each_row_is_acknowledged() -> None:
    answer, rows = insert(TARGET + b'{"A":1}\n\n{"A":2,"B":1.50}')
    assert (answer.status_code, answer.headers["content-type"]) == (200, DELIMITED)
    assert acks(answer) == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert rows == [{"A": 1}, {"A": 2, "B": Decimal("1.50")}]
    assert str(rows[1]["B"]) == "1.50"


def test_a_request_about_tokens_learns_where_its_rows_are() -> None:
    before = Token().with_({("other", 0): 3})
    asking = {"target": "S", "requestProperties": {TOKEN: before.text()}}
    text = json.dumps(asking).encode() + b'\n{"A":7}\n{"A":"x"}\n{"A":4}\n'
    first, wrong, last = acks(insert(text)[0])
    assert first["status"] == "ok"
    assert Token.of(first["consistencyToken"]) == before.with_({("s", 0): 7})
    assert (wrong["status"], "consistencyToken" in wrong) == ("error", False)
    assert last == first | {"seq": 2}  # a token never names less
    assert not any("consistencyToken" in each for each in acks(insert(TARGET + b'{"A":7}')[0]))


@pytest.mark.parametrize("token", ["x", Token(scope=TokenScope("c", "other_")).text()])
def test_a_token_of_no_use_is_refused_before_any_row(token: str) -> None:
    asking = {"target": "S", "requestProperties": {TOKEN: token}}
    answer, rows = insert(json.dumps(asking).encode() + b'\n{"A":1}\n')
    assert (answer.status_code, answer.json()["error_code"], rows) == (400, 40000, [])


def test_acknowledgements_as_an_array() -> None:
    answer, _ = insert(TARGET + b'{"A":1}\n{"A":2}\n', JSON)
    assert answer.headers["content-type"] == JSON
    assert answer.json() == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert insert(TARGET, JSON)[0].json() == []
    assert insert(TARGET)[0].text == ""


def test_a_row_that_fails_does_not_stop_the_later_ones() -> None:
    answer, rows = insert(TARGET + b'{"A":1}\n{"A":"x"}\n{"A":3}\n')
    assert acks(answer) == [
        {"status": "ok", "seq": 0},
        {"status": "error", "seq": 1, "error_code": 40001, "message": "A is wrong"},
        {"status": "ok", "seq": 2},
    ]
    assert rows == [{"A": 1}, {"A": 3}]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (b"{", 40000, "not valid JSON"),
        (b"[1]", 40000, "JSON object"),
        (b'{"A":NaN}', 40000, "not valid JSON"),
        (b"\xff", 40000, "no UTF-8 at byte 0"),
        (b'{"A":' + b"[" * 200_000, 40000, "nested too deeply"),
        (b'{"A":' + b"9" * 5000 + b"}", 40000, "too many digits"),
        (b'{"Z":1}', 40001, "there is no Z"),
        (b'{"A":-1}', 50000, "no broker"),
    ],
)
@pytest.mark.parametrize("accept", [DELIMITED, JSON])
def test_endings_of_the_stream(line: bytes, code: int, says: str, accept: str) -> None:
    answer, rows = insert(TARGET + b'{"A":1}\n' + line + b'\n{"A":3}\n', accept)
    body = answer.json() if accept == JSON else acks(answer)
    assert [(ack["status"], ack["seq"]) for ack in body] == [("ok", 0), ("error", 1)]
    assert body[1]["error_code"] == code
    assert says in body[1]["message"]
    assert rows == [{"A": 1}]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (b"", 40000, "not valid JSON"),
        (b"{\n", 40000, "not valid JSON"),
        (b'{"properties":{}}\n', 40000, "lacks the field 'target'"),
        (b'{"target":"S","properties":5}\n', 40000, "field 'properties'"),
        (b'{"target":"T"}\n{"A":1}\n', 40001, "no stream T"),
    ],
)
def test_immediate_refusal_has_a_status(text: bytes, code: int, says: str) -> None:
    answer, rows = insert(text)
    assert (answer.status_code, answer.json()["error_code"]) == (400, code)
    assert says in answer.json()["message"]
    assert rows == []


def test_the_media_type_is_negotiated() -> None:
    assert insert(TARGET, "text/html")[0].status_code == 406


# --- over a real socket --------------------------------------------------------------------------


@contextlib.contextmanager
def conversation(url: str) -> Iterator[socket.socket]:
    """A request whose body is still to come, piece by piece."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        sock.sendall(
            b"POST /inserts-stream HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        yield sock


def say(sock: socket.socket, piece: bytes) -> None:
    sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))


def hear(sock: socket.socket, until: bytes) -> bytes:
    text = b""
    while until not in text:
        received = sock.recv(4096)
        assert received, text
        text += received
    return text


def test_a_row_is_acknowledged_before_the_next_one_is_sent() -> None:
    with serving(FakeService()) as (url, _), conversation(url) as sock:
        say(sock, TARGET + b'{"A":1}\n{"A":')
        assert b"200 OK" in hear(sock, b'{"status":"ok","seq":0}')
        say(sock, b"2}\n")
        assert b"seq" in hear(sock, b'{"status":"ok","seq":1}')
        say(sock, b"")
        assert hear(sock, b"0\r\n\r\n").endswith(b"0\r\n\r\n")


def test_a_client_that_leaves_ends_its_stream(caplog: pytest.LogCaptureFixture) -> None:
    service = FakeService()
    with serving(service) as (url, _):
        with conversation(url) as sock:
            say(sock, TARGET + b'{"A":1}\n{"A":')
            hear(sock, b'{"status":"ok","seq":0}')
        assert httpx.get(f"{url}/info").status_code == 200
    assert [call for call in service.calls if call[0] == "row"] == [("row", {"A": 1})]
    assert caplog.text == ""


def test_a_server_that_stops_says_so() -> None:
    with serving(FakeService()) as (url, app), conversation(url) as sock:
        say(sock, TARGET + b'{"A":1}\n')
        hear(sock, b'"seq":0')
        app.state.context.shut()
        say(sock, b'{"A":2}\n{"A":3}\n')
        assert b'"error_code":50303' in hear(sock, b"0\r\n\r\n")


def test_a_server_that_stops_says_so_to_a_silent_client() -> None:
    with serving(FakeService()) as (url, app), conversation(url) as sock:
        say(sock, TARGET + b'{"A":1}\n')
        hear(sock, b'"seq":0')
        app.state.context.shut()
        ended = hear(sock, b"0\r\n\r\n")
        assert b'"status":"error","seq":1,"error_code":50303' in ended


@pytest.mark.parametrize(
    "row",
    [
        rb'{"A":"\ud800"}',
        rb'{"A":"x\uDFFFy"}',
        rb'{"A":["\udead"]}',
        rb'{"A":{"\ud800":1}}',
        rb'{"A":{"B":{"C":"\ud800"}}}',
        rb'{"\ud800":1}',
        b'{"A":"\xed\xa0\x80"}',
    ],
)
def test_half_a_surrogate_pair_is_refused_anywhere(row: bytes) -> None:
    answer, rows = insert(TARGET + row + b"\n")
    (ack,) = acks(answer)
    assert (ack["status"], ack["error_code"], rows) == ("error", 40000, [])
    assert "surrogate" in ack["message"]


def test_a_whole_pair_and_other_escapes_are_texts() -> None:
    answer, rows = insert(TARGET + rb'{"A":1,"B":"\ud83d\ude00 \u00e9","C":1.50}')
    assert acks(answer) == [{"status": "ok", "seq": 0}]
    assert rows == [{"A": 1, "B": "\U0001f600 \u00e9", "C": Decimal("1.50")}]
