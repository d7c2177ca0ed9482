"""A connection without traffic is closed, unless its client waits for an answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import h2.connection
import h2.events
import pytest
from starlette.requests import Request

from ksql.http.http2 import PREFACE
from ksql.http.timeouts import Flow, Idle
from tests.unit.http.clients import PATIENCE_S, Frames, hosted
from tests.unit.http.transports import connected, pause

SHORT_S = 0.05
LONG_S = 10 * SHORT_S
HALF = 100_000
GET = b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HEADERS = b"\x00\x40\x00\x01\x04\x00\x00\x00\x01"  # of 16 KB, which are still to come
UPGRADE = (
    b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def late(scope, receive, send):
    """Answer with the length of the body, much later than connections may be idle."""
    await asyncio.sleep(LONG_S)
    length = 0
    while (message := await receive())["type"] == "http.request":
        length += len(message["body"])
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.sleep(LONG_S if scope["path"] == "/twice" else 0)
    await send({"type": "http.response.body", "body": b"<%d>" % length})


async def reading(_scope, receive, send):
    """Answer once the body has come, or the client has left."""
    while (await receive()).get("more_body"):
        pass
    with contextlib.suppress(OSError):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"<all>"})


def opened(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def to_the_end(sock):
    """Read until the server closes, or resets what it was not sent in full."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := sock.recv(1 << 16):
            received += data
    return received


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"PRI * HT",
        GET[:2],
        GET[:-2],
        b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhell",
        b"POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhell",
        b"PUT /x HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhell",
        GET,
        b"DELETE" + GET[3:],
        GET + GET[:9],
        PREFACE,
        PREFACE + b"\x00\x00",
    ],
)
def test_a_request_that_does_not_come_whole_is_not_waited_for(text):
    with hosted(reading, idle_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(text)
        answer = to_the_end(sock)
    assert answer.count(b"<all>") == (text.find(b"/x HTTP/1.1\r\nhost: x\r\n\r\n") > 0)


@pytest.mark.parametrize(
    "text", [b"GET /x HTTP/1.1\r\n", b"FOO /x HTTP/1.1\r\n", PREFACE + SETTINGS + HEADERS]
)
def test_a_head_does_not_live_by_its_bytes(text):
    async def run():
        transport, _ = connected(reading, idle_s=SHORT_S)
        transport.protocol.data_received(text)
        for _ in range(int(50 * PATIENCE_S)):
            if transport.closing:
                return
            transport.protocol.data_received(b"a")
            await asyncio.sleep(SHORT_S / 5)
        pytest.fail("the connection is still open")

    asyncio.run(run())


@pytest.mark.parametrize("path", [b"/x", b"/twice"])
@pytest.mark.parametrize("method", [b"GET", b"DELETE"])
def test_client_waiting_for_an_answer_is_not_idle(method, path):
    with hosted(late, idle_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(method + b" " + path + GET[6:])
        assert b"<0>" in to_the_end(sock)


@pytest.mark.parametrize("method", [b"POST", b"PUT"])
def test_client_without_window_is_not_idle(method):
    head = b" /x HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (2 * HALF)
    with hosted(late, idle_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(method + head + b"x" * 2 * HALF)
        assert b"<200000>" in to_the_end(sock)


def test_a_stream_that_waits_for_its_answer_keeps_the_connection():
    with hosted(late, idle_s=SHORT_S) as port, Frames(port) as client:
        stuck = client.request("/x", method="POST", end=False)
        number = client.request("/twice")
        assert client.whole(number) == b"<0>"
        client.send(stuck, b"hello")
        ended = h2.events.ConnectionTerminated
        client.until(lambda: any(isinstance(each, ended) for each in client.seen))


def test_a_websocket_may_be_idle():
    async def app(_scope, _receive, send):
        await asyncio.sleep(LONG_S)
        await send({"type": "websocket.accept"})
        await asyncio.sleep(LONG_S)
        await send({"type": "websocket.send", "text": "a row"})
        await send({"type": "websocket.close"})

    with hosted(app, idle_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(UPGRADE)
        received = b""
        while b"a row" not in received:
            data = sock.recv(1 << 16)
            assert data, received
            received += data


# --- the clock


class Loop:
    """Time as a test has it; one timer at most."""

    def __init__(self):
        self.now = 0.0
        self.due = None

    def time(self):
        return self.now

    def call_later(self, seconds, work):
        self.due = (self.now + seconds, work)
        return self

    def cancel(self):
        self.due = None

    def pass_(self, seconds):
        end = self.now + seconds
        while self.due is not None and self.due[0] <= end:
            self.now, work = self.due
            self.due = None
            work()
        self.now = end


class Sending:
    """A transport whose client has not taken so much."""

    def __init__(self):
        self.left = 0
        self.ends = []

    def get_extra_info(self, _name):
        """It has no socket."""

    def get_write_buffer_size(self):
        return self.left

    def is_closing(self):
        return bool(self.ends)

    def pause_reading(self):
        """Nothing comes."""

    def resume_reading(self):
        """Something may come."""

    def close(self):
        self.ends.append("closed")

    def abort(self):
        self.ends.append("aborted")


class Case:
    def __init__(self, seconds=10.0):
        self.loop, self.transport, self.answering = Loop(), Sending(), False
        transport = self.transport
        self.idle = Idle(self.loop, seconds, transport, lambda: self.answering, transport.close)


def test_traffic_restarts_the_time():
    case = Case()
    for _ in range(5):
        case.loop.pass_(9)
        case.idle.touch()
    case.loop.pass_(9.5)
    assert case.transport.ends == []
    case.loop.pass_(1)
    assert case.transport.ends == ["closed"]
    case.idle.end()
    assert case.loop.due is None


def test_a_running_answer_is_traffic():
    case = Case()
    case.answering = True
    case.loop.pass_(1e6)
    case.answering = False
    case.loop.pass_(9)
    assert case.transport.ends in ([], ["closed"])
    case.loop.pass_(10)
    assert case.transport.ends == ["closed"]


def test_zero_sets_no_end():
    case = Case(0)
    case.loop.pass_(1e9)
    case.idle.end()
    assert case.transport.ends == []


def test_waits_only_for_clients_that_drain_their_response():
    case = Case()
    for case.transport.left in (90, 80, 70):
        case.loop.pass_(10)
    assert case.transport.ends == []
    case.loop.pass_(10)
    assert case.transport.ends == ["aborted"]


def test_a_closed_connection_whose_client_takes_nothing_is_cut():
    case = Case()
    case.answering = True  # as far as its application has got
    case.transport.ends = ["closed"]
    case.transport.left = 50
    case.loop.pass_(20)
    assert case.transport.ends == ["closed", "aborted"]


def test_while_reading_is_paused_nothing_can_come():
    case = Case()
    flow = Flow(case.transport, case.idle, lambda: 0)
    flow.pause_reading()
    case.loop.pass_(9)
    flow.resume_reading()
    case.loop.pass_(9)
    assert case.transport.ends == []
    flow.resume_reading()  # which it was not
    case.loop.pass_(2)
    assert case.transport.ends == ["closed"]


# --- what a client may have kept for it


class Asking:
    """An application that asks again and again whether the client is there, then answers."""

    def __init__(self):
        self.calls = 0
        self.enough = asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.calls += 1
        await receive()
        while not self.enough.is_set():
            await Request(scope, receive).is_disconnected()
            await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"<all>"})


@pytest.mark.slow
@pytest.mark.parametrize("method", [b"GET", b"DELETE"])
def test_requests_behind_a_running_one_are_read_up_to_a_bound(method):
    each = method + GET[3:]
    piece = each * (50_000 // len(each))

    async def run():
        app = Asking()
        transport, _ = connected(app)
        given = 0
        for _ in range(50):
            if not transport.paused:
                transport.protocol.data_received(piece)
                given += 1
            await pause()
        assert 1 < given <= 3
        assert app.calls == 1
        app.enough.set()
        for _ in range(100_000):
            if transport.sent.count(b"<all>") == given * piece.count(b"\r\n\r\n"):
                break
            await asyncio.sleep(0)
        assert transport.sent.count(b"<all>") == given * piece.count(b"\r\n\r\n")
        assert not transport.paused

    asyncio.run(run())


# --- what comes behind the end


def frames():
    """What a client of HTTP/2 begins with, and a request of its."""
    client = h2.connection.H2Connection()
    client.initiate_connection()
    first = client.data_to_send()
    fields = {":method": "GET", ":scheme": "http", ":authority": "x", ":path": "/x"}
    client.send_headers(1, list(fields.items()), end_stream=True)
    return first, client.data_to_send()


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"", GET),
        (b"", b"".join(frames())),
        (GET, GET),
        (b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", GET),
        (b"DELETE /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", GET),
        (b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n", b"hello"),
        (b"PUT /x HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n", b"hello"),
        (b"no request\r\n\r\n", GET),
        frames(),
        (UPGRADE, b"\x81\x85\x00\x00\x00\x00hello"),
    ],
)
def test_nothing_is_answered_behind_the_end(first, then, lost):
    calls = []

    async def app(scope, receive, send):
        calls.append(scope["path"])
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while calls[-1] != "websocket.disconnect":
                calls.append((await receive())["type"])
        else:
            await reading(scope, receive, send)

    async def run():
        transport, state = connected(app)
        if first:
            transport.protocol.data_received(first)
        await pause()
        transport.close()
        if lost:
            transport.protocol.connection_lost(None)
            await pause()
        before = list(calls), transport.protocol, len(state.connections), len(state.tasks)
        transport.protocol.data_received(then)
        await pause()
        assert before == (calls, transport.protocol, len(state.connections), len(state.tasks))
        if not lost:
            transport.protocol.connection_lost(None)
            await pause()
        assert (state.connections, state.tasks) == (set(), set())
        assert "websocket.receive" not in calls

    asyncio.run(run())
