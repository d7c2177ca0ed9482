"""A client's bytes are taken in small pieces, so that no other client waits long for its turn."""

from __future__ import annotations

import contextlib
import ssl
from asyncio import sslproto

import pytest
import trustme

from ksql.http.fast_http1 import Http1
from ksql.http.http2 import Http2
from ksql.http.read_sizes import READ_BYTES, Turns
from ksql.http.tls import KEYSTORE, TYPE, server_context
from tests.unit.http.clients import Frames, hosted
from tests.unit.http.test_idle import opened

CHUNKS = b"1\r\nx\r\n" * 20_000
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


async def taking(_scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"<all>"})


@pytest.fixture
def pieces(monkeypatch):
    """The sizes of what protocols were given."""
    sizes = []
    for protocol in (Http1, Http2):
        taken = protocol.data_received

        def data_received(self, data, taken=taken):
            sizes.append(len(data))
            taken(self, data)

        monkeypatch.setattr(protocol, "data_received", data_received)
    return sizes


def ask(sock):
    sock.sendall(HEAD + CHUNKS + b"0\r\n\r\n")
    answer = b""
    while b"<all>" not in answer:
        answer += (piece := sock.recv(1 << 16))
        assert piece


def test_a_body_of_small_chunks_comes_in_small_pieces(pieces):
    with hosted(taking) as port, opened(port) as sock:
        ask(sock)
    assert 0 < max(pieces) <= READ_BYTES


def test_small_frames_come_in_small_pieces(pieces):
    with hosted(taking) as port, Frames(port) as client:
        number = client.request("/", method="POST", end=False)
        for _ in range(2_000):
            client.h2.send_data(number, b"x")
            client.h2.ping(b"12345678")
        client.send(number, b"", end=True)
        assert client.whole(number) == b"<all>"
    assert 0 < max(pieces) <= READ_BYTES


def test_connections_over_tls_keep_small_buffers(pieces, tmp_path):
    """A buffer of 256 KiB for each, from before its handshake, was 512 MB for 2,000 of them."""
    authority, path = trustme.CA(), tmp_path / "server.pem"
    path.write_bytes(authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with contextlib.ExitStack() as stack:
        context = server_context({KEYSTORE: str(path), TYPE: "PEM"})
        port = stack.enter_context(hosted(taking, context))
        ask(stack.enter_context(trusting.wrap_socket(opened(port), server_hostname="127.0.0.1")))
    assert sslproto.SSLProtocol.max_size == READ_BYTES
    assert 0 < max(pieces) <= 5 * READ_BYTES  # a TLS record is 16 KiB


def test_connections_whose_pieces_take_long_wait_for_one_another():
    turns = Turns()
    assert turns.pause_s(99.5, 100.0, 0.001) == 0.0
    assert turns.pause_s(99.5, 100.0, 0.5) == 0.5
    assert turns.pause_s(100.0, 100.5, 0.5) == 1.0  # both have taken a second, which ends at 101.5
    assert turns.pause_s(100.5, 100.6, 0.001) == 0.0
    assert turns.pause_s(199.5, 200.0, 0.5) == 0.5


@pytest.fixture
def slow(monkeypatch):
    """Each piece counts as one that took long; returns how many did."""
    pauses = []

    def pause_s(*_args):
        pauses.append(0.001)
        return pauses[-1]

    monkeypatch.setattr(Turns, "pause_s", pause_s)
    return pauses


def test_a_body_whose_pieces_take_long_comes_whole(slow):
    with hosted(taking) as port, opened(port) as sock:
        ask(sock)
    assert len(slow) > 10


def test_frames_whose_pieces_take_long_come_whole(slow):
    with hosted(taking) as port, Frames(port) as client:
        number = client.request("/", method="POST", end=False)
        for _ in range(2_000):
            client.h2.ping(b"12345678")
        client.send(number, b"x", end=True)
        assert client.whole(number) == b"<all>"
    assert len(slow) > 2
