"""A client that takes nothing of what it is sent is hung up on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from types import SimpleNamespace

import h2.errors
import h2.events
import pytest
import trustme

from ksql.http.http2 import Stream
from ksql.http.timeouts import Unread
from ksql.http.tls import KEYSTORE, TYPE, server_context
from tests.unit.http.clients import PATIENCE_S, Frames, hosted
from tests.waits import await_true

SHORT_S = 0.2
MEGABYTE = 1 << 20
ENOUGH = 1 << 30
"""Bytes; a stream is sent far fewer within the time that another one may go unread."""
PIECE = b"r" * 100_000
UPGRADE = (
    b"GET /x?access_token=secret HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n"
    b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Flood:
    """An application that sends until the client has left."""

    def __init__(self, piece=PIECE):
        self.piece = piece
        self.left, self.rests = threading.Event(), threading.Event()

    async def __call__(self, scope, receive, send):
        scope["state"]["query_id"] = "query_7"
        web = scope["type"] == "websocket"
        if web:
            await send({"type": "websocket.accept"})
        else:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        body = {"type": "http.response.body", "body": self.piece, "more_body": True}
        message = {"type": "websocket.send", "bytes": self.piece} if web else body
        sending = asyncio.ensure_future(self._rows(send, message))
        while not (await receive())["type"].endswith(".disconnect"):
            pass
        sending.cancel()
        self.left.set()

    async def _rows(self, send, message):
        loop = asyncio.get_running_loop()
        while True:
            rests = loop.call_later(SHORT_S, self.rests.set)  # it waits for the client by then
            await send(message)
            rests.cancel()
            await asyncio.sleep(0)


def opened(port, request, context=None):
    """A connection whose small buffers fill at once, after a request that is never read."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(PATIENCE_S)
    plain.connect(("127.0.0.1", port))
    sock = plain if context is None else context.wrap_socket(plain, server_hostname="127.0.0.1")
    sock.sendall(request)
    return sock


def drain(sock):
    """Read to the end."""
    while sock.recv(1 << 20):
        pass


def noted(caplog):
    return [record for record in caplog.records if record.message == "client_takes_nothing"]


@pytest.mark.parametrize(
    "request_", [b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n", UPGRADE], ids=["http", "websocket"]
)
def test_a_client_that_never_reads_is_cut_off(request_, caplog):
    app = Flood()
    with (
        caplog.at_level(logging.INFO),
        hosted(app, patience_s=SHORT_S) as port,
        opened(port, request_) as sock,
    ):
        assert app.left.wait(PATIENCE_S)
        with pytest.raises(ConnectionResetError):
            drain(sock)
    [record] = noted(caplog)
    assert (record.path, record.query_id, record.seconds) == ("/x", "query_7", SHORT_S)
    assert "secret" not in caplog.text


def test_over_tls_too(tmp_path, caplog):
    authority = trustme.CA()
    path = tmp_path / "server.pem"
    path.write_bytes(authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    app = Flood()
    tls = server_context({KEYSTORE: str(path), TYPE: "PEM"})
    request = b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with hosted(app, tls, SHORT_S) as port, opened(port, request, trusting):
        assert app.left.wait(PATIENCE_S)
    assert len(noted(caplog)) == 1


def test_a_stream_without_credit_is_reset_and_the_others_continue(caplog):
    app = Flood()
    with hosted(app, patience_s=SHORT_S) as port, Frames(port) as client:
        number = client.request("/x")
        client.until(lambda: bool(client.of(h2.events.StreamReset, number)))
        [reset] = client.of(h2.events.StreamReset, number)
        assert reset.error_code == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM
        assert app.left.wait(PATIENCE_S)
        client.h2.increment_flow_control_window(1 << 16)
        other = client.request("/x")
        assert client.headers(other)[":status"] == "200"
    assert noted(caplog)[0].query_id == "query_7"


def test_credit_for_another_stream_is_none_for_one_that_is_not_read(caplog):
    app = Flood()
    with hosted(app, patience_s=5 * SHORT_S) as port, Frames(port) as client:
        client.h2.increment_flow_control_window(1 << 24)  # of the connection
        unread, read = client.request("/x"), client.request("/y")
        credited = 0

        def reset_or_late():
            nonlocal credited
            new, reset = len(client.body(read)), client.of(h2.events.StreamReset, unread)
            client.seen.clear()
            if new:
                client.credit(read, new)
                credited += new
            if reset:
                client.seen += reset
            return bool(reset) or credited > ENOUGH

        client.until(reset_or_late)
        assert client.of(h2.events.StreamReset, unread)
    assert noted(caplog)[0].path == "/x"


def test_streams_take_turns_at_the_credit_of_their_connection():
    """A piece of any size gives way to other streams."""
    app = Flood(b"r" * (16 * MEGABYTE))
    with hosted(app) as port, Frames(port) as client:
        taken = {client.request("/x"): 0, client.request("/y"): 0}

        def both():
            for number in taken:
                if new := len(client.body(number)):
                    client.credit(number, new)
                    taken[number] += new
            client.seen.clear()
            return min(taken.values()) > MEGABYTE

        client.until(both)
    assert max(taken.values()) < 4 * MEGABYTE


@pytest.mark.parametrize(
    ("own", "sent", "since"),
    [(5, 900, 7.0), (5, 0, 1.0), (0, 900, 1.0)],
    ids=["its turn will come", "nothing is taken", "it has no credit of its own"],
)
def test_a_stream_that_waits_for_its_turn_is_not_given_up(own, sent, since):
    window = SimpleNamespace(outbound_flow_control_window=0)
    order: list[Stream] = []
    now_s = iter((1.0, 7.0))
    connection = SimpleNamespace(
        frames=SimpleNamespace(streams={3: window}),
        sent=0,
        goes_last=order.append,
        now_s=lambda: next(now_s),
    )
    stream = Stream(connection, 3, {})
    assert stream._owed_since() == 1.0
    window.outbound_flow_control_window, connection.sent = own, sent
    assert stream._owed_since() == since
    assert order == [stream]


def test_credit_that_no_byte_can_follow_keeps_no_stream_alive(caplog):
    """The connection's is used up."""
    with hosted(Flood(), patience_s=5 * SHORT_S) as port, Frames(port) as client:
        number = client.request("/x")
        client.until(lambda: len(client.body(number)) == 65_535)
        client.sock.settimeout(SHORT_S / 10)

        def reset():
            client.h2.increment_flow_control_window(1000, number)
            client.flush()
            with contextlib.suppress(TimeoutError):
                client.seen += client.h2.receive_data(client.sock.recv(1 << 16))
            return client.of(h2.events.StreamReset, number)

        await_true("it is reset", reset)
    assert noted(caplog)[0].path == "/x"


def test_an_http2_client_that_never_reads_is_cut_off(caplog):
    app = Flood()
    with hosted(app, patience_s=SHORT_S) as port, Frames(port) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        number = client.request("/x")
        client.headers(number)
        for _ in range(2_000):
            client.h2.increment_flow_control_window(1 << 20)
            client.h2.increment_flow_control_window(1 << 20, number)
        client.flush()
        assert app.left.wait(PATIENCE_S)
    assert noted(caplog)[0].query_id == "query_7"


LONG_S = 600.0
H11 = (
    b"POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    "request_",
    [b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n", H11, UPGRADE],
    ids=["http", "h11", "websocket"],
)
def test_a_client_that_ends_its_side_has_left_although_much_is_unread(request_):
    app = Flood()
    with hosted(app, patience_s=LONG_S) as port, opened(port, request_) as sock:
        assert app.rests.wait(PATIENCE_S)
        sock.shutdown(socket.SHUT_WR)
        assert app.left.wait(PATIENCE_S)


@pytest.mark.parametrize(
    "request_",
    [b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n", H11, UPGRADE],
    ids=["http", "h11", "websocket"],
)
def test_what_it_has_not_read_is_kept_for_the_usual_time_only(request_, caplog):
    app = Flood()
    with hosted(app, patience_s=2 * SHORT_S) as port, opened(port, request_) as sock:
        assert app.rests.wait(PATIENCE_S)
        sock.shutdown(socket.SHUT_WR)
        await_true("it is given up", lambda: noted(caplog))
        with pytest.raises(ConnectionResetError):
            drain(sock)


class Transport:
    """A transport with so much left to send."""

    def __init__(self, *sizes, closing=False):
        self.sizes = list(sizes)
        self.aborted = False
        self.closing = closing

    def is_closing(self):
        return self.closing

    def get_write_buffer_size(self):
        return self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]

    def get_extra_info(self, _name):
        return None

    def abort(self):
        self.aborted = True


def test_a_client_that_reads_slowly_is_waited_for():
    async def run():
        ended = asyncio.Event()
        transport = Transport(100, 90, 90, 80, 80, 80)
        unread = Unread(asyncio.get_running_loop(), 0.001, transport, ended.set)
        unread.begin()
        await ended.wait()
        assert transport.sizes == [80]  # it was looked at until nothing was taken any more
        assert transport.aborted

    asyncio.run(run())


def test_a_client_that_has_read_is_left_alone():
    async def run():
        loop = asyncio.get_running_loop()
        transport = Transport(100)
        ends = []
        unread = Unread(loop, 0.001, transport, lambda: ends.append(1))
        unread.begin()
        unread.end()
        await asyncio.sleep(0.01)
        assert (ends, transport.aborted) == ([], False)

    asyncio.run(run())


@pytest.mark.parametrize("closing", [False, True])
def test_a_client_that_has_taken_enough_is_left_alone_unless_it_is_to_take_all(closing):
    async def run():
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        transport = Transport(100, closing=closing)
        unread = Unread(loop, 0.001, transport, ended.set)
        unread.begin()
        unread.taken()
        if closing:
            await ended.wait()
        else:
            await asyncio.sleep(0.01)
        assert transport.aborted is closing

    asyncio.run(run())
