"""HTTP/2 beside HTTP/1.1: streams side by side, bounded in both directions, ended by either end."""

from __future__ import annotations

import asyncio
import socket
import struct

import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import httpx
import pytest

from tests.unit.http.clients import PATIENCE_S, Endless, Frames, hosted

WINDOW = 65_535


async def answered(send, body=b"", status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def body_of(receive):
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message["body"]
        if not message["more_body"]:
            return body


async def echo(scope, receive, send):
    """The version and the body of a request."""
    body = await body_of(receive)
    await answered(send, scope["http_version"].encode() + b" " + body)


async def head(scope, receive, send):
    """The names that a guard looks at."""
    names = b"|".join(name + b"=" + value for name, value in scope["headers"])
    await answered(send, names, headers=[(b"connection", b"close"), (b"X-Own", b"1")])


async def acks(scope, receive, send):
    """An acknowledgement for each piece as soon as it comes."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        if message["body"]:
            ack = b"ack " + message["body"]
            await send({"type": "http.response.body", "body": ack, "more_body": True})
        if not message["more_body"]:
            break
    await send({"type": "http.response.body", "body": b""})


def big(size):
    """An answer of one piece."""

    async def app(scope, receive, send):
        await answered(send, b"x" * size)

    return app


def test_both_versions_are_spoken_on_one_port():
    with hosted(echo) as port:
        url = f"http://127.0.0.1:{port}/"
        assert httpx.post(url, content=b"old").text == "1.1 old"
        with httpx.Client(http1=False, http2=True) as client:
            answer = client.post(url, content=b"new")
            assert (answer.text, answer.http_version) == ("2 new", "HTTP/2")
            assert client.get(url).text == "2 "
            assert answer.headers["server"] == "uvicorn"
            assert answer.headers["date"]


@pytest.mark.parametrize("cut", [1, 3, 20])
def test_first_bytes_that_come_in_pieces(cut):
    """``P`` may begin POST as well as the preface."""
    with hosted(echo) as port:
        for request, answer in (
            (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi", b"1.1 hi"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", b"\0\0"),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.sendall(request[:cut])
                assert httpx.get(f"http://127.0.0.1:{port}").text == "1.1 "  # lets it arrive
                sock.sendall(request[cut:])
                received = b""
                while answer not in received:
                    received += sock.recv(1 << 16)


def test_the_authority_is_the_host():
    with hosted(head) as port, Frames(port) as client:
        number = client.request("/", authority="evil.example", accept="x")
        headers = client.headers(number)
        assert client.whole(number) == b"host=evil.example|accept=x"
        assert headers["x-own"] == "1"
        assert "connection" not in headers


def test_a_head_has_no_body():
    with hosted(big(10)) as port, Frames(port) as client:
        assert client.whole(client.request("/", method="HEAD")) == b""


def test_acknowledgements_come_while_the_request_is_open():
    with hosted(acks) as port, Frames(port) as client:
        number = client.request("/", method="POST", end=False)
        for sent in range(3):
            client.send(number, f"row {sent}\n".encode())
            body = "".join(f"ack row {each}\n" for each in range(sent + 1)).encode()
            client.until(lambda expected=body: client.body(number) == expected)
        client.send(number, b"", end=True)
        assert client.whole(number).count(b"ack") == 3


def test_an_answer_waits_for_credit_and_loses_nothing():
    size = 5 * WINDOW
    with hosted(big(size)) as port, Frames(port) as client:
        number = client.request("/")
        client.until(lambda: len(client.body(number)) == WINDOW)
        other = client.request("/")  # the connection's credit is used up, not the connection
        client.headers(other)
        client.credit(number, size)
        assert len(client.whole(number)) == size


def test_a_client_that_reads_nothing_bounds_what_is_sent():
    app = Endless()
    with hosted(app) as port:
        with Frames(port) as client:
            number = client.request("/")
            client.until(lambda: len(client.body(number)) == WINDOW)
            # an answer to something that was asked later: the sender had its turns in between
            for _ in range(3):
                client.h2.ping(b"12345678")
                client.flush()
                acked = len(client.seen)
                client.until(lambda acked=acked: len(client.seen) > acked)
            assert app.sent <= WINDOW
        assert app.left.acquire(timeout=PATIENCE_S)
        assert app.running == 0


def test_a_body_that_is_not_read_is_not_credited():
    reading = asyncio.Event()

    async def app(scope, receive, send):
        if scope["path"] == "/go":
            reading.set()
            await answered(send)
            return
        await reading.wait()
        await answered(send, str(len(await body_of(receive))).encode())

    with hosted(app) as port, Frames(port) as client:
        number = client.request("/", method="POST", end=False)
        sent = 0
        while (room := client.h2.local_flow_control_window(number)) > 0:
            client.send(number, b"x" * min(room, 16_000))
            sent += min(room, 16_000)
        assert sent == WINDOW
        assert client.whole(client.request("/go", method="POST")) == b""  # others are not stopped
        client.until(lambda: client.h2.local_flow_control_window(number) > 0)
        client.send(number, b"more", end=True)
        assert client.whole(number) == str(WINDOW + 4).encode()


def test_an_answer_before_the_request_has_ended_ends_it(monkeypatch):
    monkeypatch.setattr("ksql.http.http2._LINGER_S", 0.1)
    with hosted(big(3)) as port, Frames(port) as client:
        number = client.request("/", method="POST", end=False)
        client.until(lambda: bool(client.of(h2.events.StreamReset, number)))
        assert client.body(number) == b"xxx"
        assert (
            client.of(h2.events.StreamReset, number)[0].error_code == h2.errors.ErrorCodes.NO_ERROR
        )
        assert client.whole(client.request("/")) == b"xxx"


@pytest.mark.parametrize("how", ["reset", "close", "abort", "goaway"])
def test_streams_end_with_their_client(how):
    app = Endless()
    with hosted(app) as port:
        with Frames(port) as client:
            numbers = [client.request("/") for _ in range(20)]
            for number in numbers:
                client.headers(number)
            if how == "reset":
                for number in numbers:
                    client.h2.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
                client.flush()
            elif how == "goaway":
                client.h2.close_connection()
                client.flush()
            elif how == "abort":
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if how in ("close", "abort"):
                client.sock.close()
            for _ in numbers:
                assert app.left.acquire(timeout=PATIENCE_S)
        assert app.running == 0


def test_a_failure_ends_its_stream_only():
    async def app(scope, receive, send):
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] != "/":
            raise RuntimeError("broken")
        await answered(send, b"fine")

    with hosted(app) as port, Frames(port) as client:
        early, late, fine = (client.request(path) for path in ("/early", "/late", "/"))
        assert client.headers(early)[":status"] == "500"
        client.until(lambda: bool(client.of(h2.events.StreamReset, late)))
        assert client.whole(fine) == b"fine"


def test_a_client_that_breaks_the_protocol_is_hung_up_on():
    app = Endless()
    with hosted(app) as port, Frames(port) as client:
        client.headers(client.request("/"))
        client.sock.sendall(b"\0\0\1\0\0\0\0\0\0x")  # DATA on no stream
        client.until(
            lambda: any(isinstance(e, h2.events.ConnectionTerminated) for e in client.seen)
        )
        assert app.left.acquire(timeout=PATIENCE_S)


def test_more_streams_than_are_offered_are_not_run():
    app = Endless()
    with hosted(app) as port, Frames(port) as client:
        client.until(
            lambda: any(isinstance(e, h2.events.RemoteSettingsChanged) for e in client.seen)
        )
        most = client.h2.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS]
        assert most >= 160  # as many as streams of queries have threads
        for _ in range(most):
            client.request("/")
        with pytest.raises(h2.exceptions.TooManyStreamsError):
            client.request("/")


def test_a_stop_says_farewell_and_is_bounded():
    app = Endless()
    with hosted(app) as port:
        client, idle = Frames(port), Frames(port)
        client.headers(client.request("/"))
        idle.until(lambda: any(isinstance(e, h2.events.RemoteSettingsChanged) for e in idle.seen))
    with client, idle:  # stopped: an endless answer has been cut off after the grace
        idle.until(lambda: any(isinstance(e, h2.events.ConnectionTerminated) for e in idle.seen))


def test_a_whole_url_as_target_and_an_offer_to_upgrade():
    """Some clients send both with every request; neither changes the answer."""

    async def app(scope, receive, send):
        names = [name + b"=" + value for name, value in scope["headers"] if name == b"host"]
        await answered(send, scope["path"].encode() + b" " + b" ".join(names))

    head = (
        b"GET http://there:1/a%20b?c HTTP/1.1\r\nhost: here\r\nconnection: upgrade, close\r\n"
        b"upgrade: h2c\r\n\r\n"
    )
    with hosted(app) as port, socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(head)
        received = b""
        while piece := sock.recv(1 << 16):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"/a b host=there:1" in received
