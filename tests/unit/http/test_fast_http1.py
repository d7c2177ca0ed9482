"""Ordinary requests are answered as h11 answers them, and odd ones by h11 itself."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

from ksql.http import protocol_detect
from ksql.http.fast_http1 import Http1, Ordinary
from tests.examples import examples
from tests.unit.http.transports import connected, pause

GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /a%20b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
BIG = 100_000


def response_of(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body


ODD = [
    GET,
    POST,
    GET + POST + GET,
    POST + b"\r\n" + GET,
    GET[:20],
    GET[:-2],
    POST[:-3],
    b"GET / HTTP/1.1\nHost: x\n\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"PRI * HTTP/2.0\r\n",
    response_of("GET / HTTP/1.0"),
    response_of("GET / HTTP/1.0\nHost: x\nConnection: keep-alive"),
    response_of("GET / HTTP/1.2\nHost: x"),
    response_of("GET / HTTP/1.1"),
    response_of("GET / HTTP/1.1\nHost: x\nHost: x"),
    response_of("GET / HTTP/1.1\nHost:"),
    response_of("GET / HTTP/1.1\nHost : x"),
    response_of("GET / HTTP/1.1\nHost: x\n folded: y"),
    response_of("GET / HTTP/1.1\nHost: x\nX: \t y \t "),
    response_of("GET / HTTP/1.1\nHost: x\nX: a\x01b"),
    response_of("GET / HTTP/1.1\nHost: x\nX: a\x00b"),
    response_of("GET / HTTP/1.1\nHost: x\nX: \xe9"),
    response_of("GET / HTTP/1.1\nHost: x\nX\xe9: y"),
    response_of("GET /\xe9 HTTP/1.1\nHost: x"),
    response_of("GET /%C3%A9%ff HTTP/1.1\nHost: x"),
    response_of("GET /a#b?c HTTP/1.1\nHost: x"),
    response_of("GET /?a=%20&b HTTP/1.1\nHost: x"),
    response_of("GET  / HTTP/1.1\nHost: x"),
    response_of("GET http://y/a HTTP/1.1\nHost: x"),
    response_of("GET * HTTP/1.1\nHost: x"),
    response_of("OPTIONS * HTTP/1.1\nHost: x"),
    response_of("CONNECT y:80 HTTP/1.1\nHost: x"),
    response_of("HEAD / HTTP/1.1\nHost: x"),
    response_of("HEAD /length HTTP/1.1\nHost: x"),
    response_of("PUT / HTTP/1.1\nHost: x\nContent-Length: 2", b"ab"),
    response_of("FOO / HTTP/1.1\nHost: x"),
    response_of("get / HTTP/1.1\nHost: x"),
    response_of("GET / HTTP/1.1\nHost: x\nConnection: close"),
    response_of("GET / HTTP/1.1\nHost: x\nConnection: Close") + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: keep-alive") + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: close, foo") + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: foo") + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: close\nConnection: keep-alive") + GET,
    response_of("POST / HTTP/1.1\nHost: x") + GET,
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: 0") + GET,
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: +2", b"ab"),
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: -2", b"ab"),
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: 2, 2", b"ab"),
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: 2\nContent-Length: 3", b"ab"),
    response_of("POST / HTTP/1.1\nHost: x\nContent-Length: 0x2", b"ab"),
    response_of(f"POST / HTTP/1.1\nHost: x\nContent-Length: {'9' * 30}", b"ab"),
    response_of("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked", b"2\r\nab\r\n0\r\n\r\n")
    + GET,
    response_of("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: gzip", b"ab"),
    response_of(
        "POST / HTTP/1.1\nHost: x\nContent-Length: 3\nTransfer-Encoding: chunked", b"0\r\n\r\n"
    ),
    response_of("POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 2", b"ab"),
    response_of("POST /early HTTP/1.1\nHost: x\nContent-Length: 4", b"ab"),
    response_of("POST /early HTTP/1.1\nHost: x\nContent-Length: 4", b"abcd") + GET,
    response_of(f"POST / HTTP/1.1\nHost: x\nContent-Length: {BIG}", b"x" * BIG) + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: h2c\nHTTP2-Settings: AA")
    + GET,
    response_of("GET / HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: websocket"),
    response_of("POST / HTTP/1.1\nHost: x\nUpgrade: websocket\nContent-Length: 2", b"ab") + GET,
    response_of(f"GET /{'a' * 8_000} HTTP/1.1\nHost: x") + GET,
    response_of(f"GET /{'a' * 20_000} HTTP/1.1\nHost: x") + GET,
    response_of(f"GET /{'a' * 70_000} HTTP/1.1\nHost: x") + GET,
    response_of("GET / HTTP/1.1\nHost: x\n" + "\n".join(f"X{n}: y" for n in range(300))) + GET,
    *(
        response_of(f"GET /{what} HTTP/1.1\nHost: x") + GET
        for what in ("length", "pieces", "closes")
    ),
    *(response_of(f"GET /{what} HTTP/1.1\nHost: x") + GET for what in ("empty", "nothing", "204")),
    *(response_of(f"GET /{what} HTTP/1.1\nHost: x") + GET for what in ("late", "fails", "breaks")),
    *(response_of(f"GET /{what} HTTP/1.1\nHost: x") + GET for what in ("short", "long", "header")),
]


async def app(scope, receive, send):
    """Answer in as many ways as paths; otherwise with the request as it was understood."""
    path = scope["path"]
    if path == "/fails":
        raise ValueError("on purpose")
    if path == "/nothing":
        return
    seen = b"early" if path == "/early" else await understood(scope, receive)
    wrong = {"/length": 0, "/short": 1, "/long": -1}.get(path)
    length = [] if wrong is None else [(b"content-length", b"%d" % (len(seen) + wrong))]
    status, headers, pieces = WAYS.get(path, (200, length, [seen]))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if path == "/late":
        await asyncio.sleep(0)
    for number, piece in enumerate(pieces, 1):
        more = number < len(pieces)
        await send({"type": "http.response.body", "body": piece, "more_body": more})
        if path == "/breaks":
            raise ValueError("on purpose")


WAYS = {
    "/pieces": (201, [(b"X-Own", b"1")], [b"a", b"", b"b" * 300, b""]),
    "/late": (201, [(b"X-Own", b"1")], [b"a", b"", b"b" * 300, b""]),
    "/closes": (403, [(b"connection", b"close")], [b"no"]),
    "/empty": (200, [(b"content-length", b"0")], [b""]),
    "/204": (204, [], [b""]),
    "/breaks": (200, [], [b"a", b"b"]),
    "/header": (200, [(b"x", b"a\r\ny: b")], [b""]),
}


async def understood(scope, receive):
    """The request with its body."""
    given = b""
    while True:
        message = await receive()
        given += message.get("body", b"")
        if not message.get("more_body"):
            break
    names = ("http_version", "method", "path", "raw_path", "query_string", "headers", "state")
    return repr([scope[name] for name in names]).encode() + given


async def exchanged(pieces):
    """What is answered to pieces that come one after another, and whether it ends so."""
    transport, state = connected(app)
    for piece in pieces:
        if not transport.closing:
            transport.protocol.data_received(piece)
            await pause()
    ended, kind = transport.closing, type(transport.protocol)
    transport.closing = True
    transport.protocol.connection_lost(None)
    await pause()
    assert (state.connections, state.tasks) == (set(), set())
    return plain(transport.sent), ended, kind


def plain(sent):
    """Answers without their dates, with headers in order and in small letters."""

    def head(response):
        status, *lines = response[0].strip().split(b"\r\n")
        named = (line.partition(b":") for line in lines if not line.lower().startswith(b"date:"))
        return b"\n".join([status, *sorted(n.lower() + s + v for n, s, v in named)]) + b"\n\n"

    return re.sub(rb"HTTP/1\.1 (?s:.)*?\r\n\r\n", head, sent)


@pytest.fixture
def both(monkeypatch):
    """Both answers to the same pieces."""

    def run(pieces):
        new = asyncio.run(exchanged(pieces))
        with monkeypatch.context() as patch:
            patch.setattr(protocol_detect, "Ordinary", Http1)
            return new, asyncio.run(exchanged(pieces))

    return run


@pytest.mark.parametrize("text", ODD)
def test_answers_are_those_of_h11(both, text):
    new, old = both([text])
    assert new[:2] == old[:2]


def test_requests_that_come_in_pieces(both):
    chance = random.Random(5)
    for _ in range(examples(100)):
        text = b"".join(chance.choices(ODD, k=2))
        cuts = sorted(chance.randrange(min(len(text), 300)) for _ in range(chance.randrange(4)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if a < b]
        new, old = both(pieces)
        assert new[:2] == old[:2], pieces


def test_requests_with_a_wrong_byte(both):
    chance = random.Random(6)
    for _ in range(examples(200)):
        text = bytearray(chance.choice((GET + GET, POST + GET)))
        for _ in range(chance.randrange(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(b"\0\t\n\r :;,/%#?HTP10az\x7f\xe9")
        new, old = both([bytes(text)])
        assert new[:2] == old[:2], bytes(text)


@pytest.mark.parametrize("text", [GET, POST, GET + POST])
def test_ordinary_requests_do_without_h11(both, text):
    new, _ = both([text])
    assert new[2] is Ordinary


def test_a_header_without_its_body_waits_for_it(both):
    new, old = both([POST[:-5], POST[-5:-3], POST[-3:] + GET])
    assert new[:2] == old[:2]
    assert (new[0].count(b"200 OK"), new[2]) == (2, Ordinary)
