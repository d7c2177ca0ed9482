"""Queries over websockets, with a client of its own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import trustme
from fastapi import FastAPI
from websockets.asyncio import client as asynchronous
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from ksql.cluster.replicas.failover import Freshness
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import KsqlError, ServerError, StatementError
from ksql.core.token import TOKEN, Token
from ksql.http import hosting
from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from ksql.http.tls import KEYSTORE, TYPE, server_context
from ksql.serving.results import ResultRow
from server.app import create_app
from server.users import Users
from server.wire import INFO
from tests.unit.http.clients import hosted
from tests.unit.server.fakes import FakeService, FakeStream, FakeText, rows
from tests.unit.server.web import GRACE_S

DATA = rows((1, "a"), (2, None))
SCHEMA = [
    {"name": "ID", "schema": {"type": "INTEGER", "fields": None, "memberSchema": None}},
    {"name": "NAME", "schema": {"type": "STRING", "fields": None, "memberSchema": None}},
]
SCHEMA[0]["type"] = "KEY"
REQUEST = {"ksql": "SELECT;"}


@contextlib.contextmanager
def serving(
    service: FakeService, users: Users | None = None, longest_s: float = 60.0
) -> Iterator[tuple[str, FastAPI]]:
    app = create_app(service, users=users, websocket_s=longest_s)
    with listen("127.0.0.1", 0) as sock:
        server = HttpServer(app, [sock], GRACE_S)
        server.start("http")
        try:
            yield f"127.0.0.1:{sock.getsockname()[1]}", app
        finally:
            app.state.context.shut()
            server.stop()
            app.state.context.release()


def opened(place: str, request: object = REQUEST, more: str = "", **options: Any) -> Any:
    text = request if isinstance(request, str) else json.dumps(request)
    return connect(f"ws://{place}/ws/query?request={quote(text)}{more}", proxy=None, **options)


def received(web: ClientConnection) -> tuple[list[str], int, str]:
    """All frames, and the code and reason of the end."""
    frames = []
    close = None
    try:
        while True:
            frames.append(str(web.recv(30)))
    except ConnectionClosed as ended:
        close = ended.rcvd
    assert close is not None
    return frames, close.code, close.reason


def answered(service: FakeService, request: object = REQUEST, more: str = "") -> Any:
    with serving(service) as (place, _), opened(place, request, more) as web:
        frames, code, reason = received(web)
    return [json.loads(frame) for frame in frames], code, reason


@pytest.mark.parametrize("kind", ["pull", "push"])
def test_columns_then_rows_then_the_end(kind: Any) -> None:
    batches = [DATA, [], [ResultRow((3, None), tombstone=True)]]
    service = FakeService(stream=lambda: FakeStream(batches, kind, ends_with="Limit Reached"))
    request = REQUEST | {"streamsProperties": {"a": 1}, "sessionVariables": {"v": "x"}, "odd": 2}
    messages = answered(service, request, "&version=1")
    assert messages == (
        [
            SCHEMA,
            {"row": {"columns": [1, "a"]}},
            {"row": {"columns": [2, None]}},
            {"row": {"columns": [3, None], "tombstone": True}},
        ],
        1000,
        "done",
    )
    assert service.calls == [("SELECT;", {"a": "1"}, {"v": "x"})]


def test_a_client_that_reads_slowly_is_pinged_and_need_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosting, "_PING_S", 0.05)
    service = FakeService(stream=lambda: FakeStream([DATA]))
    request = f"GET /ws/query?request={quote(json.dumps(REQUEST))} HTTP/1.1\r\nhost: localhost"
    upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13"
    key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
    with serving(service) as (place, _):
        host, _, port = place.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as sock:
            sock.sendall("\r\n".join((request, upgrade, key, "", "")).encode())
            data = b""
            while data.count(b"\x89\x04") < 5:
                some = sock.recv(1 << 16)
                assert some, "the server has closed it"
                data += some


def test_a_query_waits_for_a_command() -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    answered(service, REQUEST | {"commandSequenceNumber": 7})
    assert service.calls == [("await", 7), ("SELECT;", {}, {})]


def test_print_gives_a_frame_per_line() -> None:
    service = FakeService(stream=lambda: FakeText([["Key format: x", "rowtime: 1"], [], ["2 ü"]]))
    with serving(service) as (place, _), opened(place) as web:
        assert received(web) == (["Key format: x", "rowtime: 1", "2 ü"], 1000, "done")


@pytest.mark.parametrize(
    ("request_", "more", "says"),
    [
        ("{", "", "not valid JSON"),
        ({}, "", "lacks the field 'ksql'"),
        ([], "", "must be a JSON object"),
        (REQUEST, "&version=2", "no version 2"),
    ],
)
def test_a_wrong_request_is_named(request_: object, more: str, says: str) -> None:
    service = FakeService()
    [error], code, reason = answered(service, request_, more)
    assert (error["error_code"], code, service.calls) == (40000, 1003, [])
    assert says in error["message"]
    assert says in reason


def test_a_request_must_be_there() -> None:
    with (
        serving(FakeService()) as (place, _),
        connect(f"ws://{place}/ws/query", proxy=None) as web,
    ):
        [frame], code, _ = received(web)
    assert (json.loads(frame)["message"], code) == ("the parameter 'request' is missing", 1003)


@pytest.mark.parametrize(
    ("error", "code", "closes"),
    [
        (RequestFailed(StatementError("no such source"), "SELECT;"), 40001, 1003),
        (RequestFailed(ServerError("no broker")), 50000, 1011),
        (KsqlError("no"), 40000, 1003),
        (ValueError("a defect"), 50000, 1011),
    ],
)
def test_a_query_that_fails_says_why(error: Exception, code: int, closes: int) -> None:
    [before], closed, _ = answered(FakeService(stream=error))
    assert (before["error_code"], closed) == (code, closes)
    stream = lambda: FakeStream([DATA, error])  # noqa: E731 - one expression
    frames, closed, reason = answered(FakeService(stream=stream))
    assert (frames[:2], frames[-1]["error_code"], closed) == (
        [SCHEMA, {"row": {"columns": [1, "a"]}}],
        code,
        closes,
    )
    assert frames[-1]["message"].startswith(reason[:20])
    assert "a defect" not in str(frames)


def test_the_reason_fits_into_a_frame() -> None:
    _, code, reason = answered(FakeService(stream=KsqlError("ü" * 200)))
    assert (code, reason) == (1003, "ü" * 60)


def leave(web: ClientConnection) -> None:
    web.close()


def vanish(web: ClientConnection) -> None:
    web.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("how", [leave, vanish])
def test_a_client_that_leaves_ends_its_query(how: Callable[[ClientConnection], None]) -> None:
    stream = FakeStream([DATA])
    with serving(FakeService(stream=lambda: stream)) as (place, app), opened(place) as web:
        assert json.loads(web.recv(30)) == SCHEMA
        web.send("words that nobody asked for")
        assert json.loads(web.recv(30)) == {"row": {"columns": [1, "a"]}}
        assert not stream.ended.is_set()
        how(web)
        assert stream.ended.wait(30)
        assert app.state.context.running == 0


def test_notes_on_an_answer_come_behind_its_rows() -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], "pull", notes=lambda: ["one", "two"]))
    with serving(service) as (place, _), opened(place) as web:
        frames, code, reason = received(web)
    assert json.loads(frames[-1]) == {"finalMessage": "one\ntwo"}
    assert (len(frames), code, reason) == (4, 1000, "done")


def test_end_of_the_server_is_announced() -> None:
    stream = FakeStream([DATA])
    with serving(FakeService(stream=lambda: stream)) as (place, app), opened(place) as web:
        for _ in range(3):
            web.recv(30)
        app.state.context.shut()
        [frame], code, _ = received(web)
    assert (json.loads(frame)["error_code"], code) == (50303, 1001)


def test_a_websocket_lives_so_long() -> None:
    stream = FakeStream([DATA])
    with (
        serving(FakeService(stream=lambda: stream), longest_s=0.2) as (place, _),
        opened(place) as web,
    ):
        frames, code, reason = received(web)
        assert stream.ended.wait(30)
    assert (len(frames), code, reason) == (3, 1001, "open for longer than 0.2 s")


def test_a_client_that_leaves_before_its_query_has_begun_ends_it() -> None:
    stream, go = FakeStream([DATA]), threading.Event()

    def slow() -> FakeStream:
        assert go.wait(30)
        return stream

    with serving(FakeService(stream=slow), longest_s=0.2) as (place, app):
        with opened(place) as web:
            assert received(web)[:2] == ([], 1001)
        go.set()
        assert stream.ended.wait(30)
        assert app.state.context.running == 0


@pytest.mark.parametrize(
    ("host", "origin", "status", "code"),
    [
        ("localhost", "https://evil.example", 403, 40300),
        ("evil.example", None, 421, 42100),
        ("evil.example", "http://evil.example", 421, 42100),
    ],
)
def test_foreign_pages_are_refused(host: str, origin: Any, status: int, code: int) -> None:
    service = FakeService()
    with serving(service) as (place, _), socket.create_connection(place.split(":")) as sock:
        with pytest.raises(InvalidStatus) as refused:
            opened(host, origin=origin, sock=sock)
        response = refused.value.response
        body = json.loads(response.body or b"")
    assert (response.status_code, body["error_code"], service.calls) == (status, code, [])


def test_a_user_has_a_header_or_a_token() -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    token = base64.b64encode(b"ada:love").decode()
    with serving(service, Users("ksql", {"ada": ("love", frozenset())})) as (place, _):
        for more in ("", "&access_token=bm9ib2R5Og==", "&access_token=%FF"):
            with pytest.raises(InvalidStatus) as refused:
                opened(place, more=more)
            assert refused.value.response.status_code == 401
            assert refused.value.response.headers["www-authenticate"].startswith("Basic")
        assert service.calls == []
        with opened(place, more=f"&access_token={quote(token)}") as web:
            assert received(web)[1] == 1000
        with opened(place, additional_headers={"Authorization": f"Basic {token}"}) as web:
            assert received(web)[1] == 1000


HEAD = (
    b"GET /ws/query?request=%7B%22ksql%22%3A%22S%3B%22%7D HTTP/1.1\r\nhost: localhost\r\n"
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
)
KEY = b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def said(place: str, request: bytes, later: bytes = b"") -> bytes:
    """All that the server says to such a client, until it hangs up."""
    with socket.create_connection(place.split(":"), timeout=30) as sock:
        sock.sendall(request)
        text = b""
        while later and b"[2,null]" not in text:
            text += sock.recv(65_536)
        if later:
            sock.sendall(later)
            text = b""
        while data := sock.recv(65_536):
            text += data
    return text


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (HEAD + b"\r\n", b"400"),
        (HEAD.replace(b"13", b"7") + KEY + b"\r\n", b"400"),
        (HEAD + KEY.replace(b"d", b"") + b"\r\n", b"400"),
        (HEAD.replace(b"GET", b"POST") + KEY + b"\r\n", b"405"),
        (HEAD + KEY + b"x: " + b"a" * 9_000 + b"\r\n\r\n", b"400"),
        (HEAD + KEY + b"".join(b"x-%d: a\r\n" % n for n in range(200)) + b"\r\n", b"400"),
        (HEAD + KEY + b"content-length: 5\r\n\r\nhello", b"400"),
        (HEAD + KEY + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    ],
)
def test_an_odd_handshake_is_answered(request_: bytes, status: bytes) -> None:
    service = FakeService()
    with serving(service) as (place, _):
        request_ = request_.replace(b"connection: upgrade", b"connection: upgrade, close")
        assert said(place, request_).startswith(b"HTTP/1.1 " + status)
    assert service.calls == []


@pytest.mark.parametrize(
    ("later", "code"),
    [
        (b"\xff" * 200, 1002),
        (b"\x81\x05hello", 1002),
        (b"\x81\x82\0\0\0\0\xff\xfe", 1007),
        (b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"\0\0\0\0", 1009),
    ],
)
def test_a_client_that_breaks_the_protocol_ends_its_query(
    later: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    stream = FakeStream([DATA])
    with serving(FakeService(stream=lambda: stream)) as (place, _):
        farewell = said(place, HEAD + KEY + b"\r\n", later)
        assert (farewell[:1], farewell[2:4]) == (b"\x88", code.to_bytes(2, "big"))
        assert stream.ended.wait(30)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_over_tls(tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "server.pem"
    path.write_bytes(authority.issue_cert("localhost").private_key_and_cert_chain_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    app = create_app(FakeService(stream=lambda: FakeStream([DATA], "pull")))
    with hosted(app, server_context({KEYSTORE: str(path), TYPE: "PEM"})) as port:
        url = f"wss://localhost:{port}/ws/query?request={quote(json.dumps(REQUEST))}"
        frames, code = asyncio.run(heard_over_tls(url, trusting))
    app.state.context.release()
    assert (len(frames), code) == (3, 1000)


async def heard_over_tls(url: str, trusting: ssl.SSLContext) -> tuple[list[str], int]:
    """What ``received`` returns.

    Not by the client with threads: it reads and writes one TLS connection in two threads, which
    OpenSSL forbids, and then may wait for ever.
    """
    async with asyncio.timeout(30), asynchronous.connect(url, ssl=trusting, proxy=None) as web:
        frames = [str(frame) async for frame in web]
    assert web.close_code is not None
    return frames, web.close_code


def test_another_path_is_not_found() -> None:
    with serving(FakeService()) as (place, _):
        for path in ("/ws/other", "/ksql", "/"):
            with (
                pytest.raises(InvalidStatus) as refused,
                connect(f"ws://{place}{path}", proxy=None),
            ):
                pass
            response = refused.value.response
            assert (response.status_code, response.body) == (404, b"Not Found")


def test_plain_request_to_a_websocket_path_is_refused() -> None:
    with serving(FakeService()) as (place, _):
        plain = httpx.get(f"http://{place}/ws/query")
        assert (plain.status_code, plain.json()["error_code"]) == (400, 40000)
        with pytest.raises(InvalidStatus) as refused:
            opened(place, REQUEST | {"odd": "x" * 9_000})
        assert refused.value.response.status_code == 400
        with opened(place) as web:  # the server is well
            assert received(web)[1] == 1003


def test_a_query_about_tokens_ends_with_one() -> None:
    seen, asking = Token().with_({("t", 0): 9}), Token().with_({("t", 0): 2})
    service = FakeService(stream=lambda: FakeStream([DATA], "pull", token=lambda: seen))
    request = {**REQUEST, "requestProperties": {TOKEN: asking.text()}}
    with serving(service) as (place, _), opened(place, request) as web:
        texts, code, _reason = received(web)
    assert json.loads(texts[-1]) == {"consistencyToken": {"consistencyToken": seen.text()}}
    assert (len(texts), code) == (4, 1000)
    assert service.caller is not None
    assert service.caller.token == asking


def test_a_token_that_is_none_is_refused() -> None:
    service = FakeService(stream=lambda: FakeStream([DATA], "pull"))
    request = {**REQUEST, "requestProperties": {TOKEN: "x"}}
    with serving(service) as (place, _), opened(place, request) as web:
        [text], code, _reason = received(web)
    assert (json.loads(text)["error_code"], code) == (40000, 1003)
    assert service.calls == []


def test_a_query_that_is_to_say_what_it_has_read_says_it_behind_its_rows() -> None:
    copy = Freshness(table="T", partition=0, host="h:1", status=ReplicaStatus(state="RUNNING"))

    @dataclass(eq=False)
    class Dated(FakeStream):
        dated: bool = True
        freshness: Sequence[Freshness] = (copy,)

    seen = Token().with_({("t", 0): 9})
    service = FakeService(stream=lambda: Dated([DATA], "pull", token=lambda: seen))
    messages, code, _ = answered(service, {**REQUEST, "requestProperties": {INFO: True}})
    assert service.caller is not None
    assert service.caller.info is True
    [offsets] = messages[3]["consistencyInfo"]
    assert (offsets["table"], offsets["host"], offsets["state"]) == ("T", "h:1", "RUNNING")
    assert (len(messages), list(messages[4]), code) == (5, ["consistencyToken"], 1000)
