"""Answers in the coding that a client asks for, each piece at once."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from ksql.http.compression import Compression, coding

LONG = b"a row of a table " * 100


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("br, zstd", None),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("deflate", "deflate"),
        ("gzip, deflate, br", "gzip"),
        ("gzip;q=0.5, deflate", "deflate"),
        ("gzip;q=0, deflate;q=0", None),
        ("gzip; q=0 , *", "deflate"),
        ("*", "gzip"),
        ("*;q=0", None),
        ("gzip;q=x", None),
        ("gzip;q=nan", None),
        ("gzip;q=inf, deflate", "deflate"),
    ],
)
def test_the_client_chooses(accepted, encoding):
    assert coding(accepted) == encoding


def answer(accepted, *pieces, method="GET"):
    """The headers and pieces of an answer of those pieces."""
    sent = []

    async def app(scope, receive, send):
        start = {"status": 200, "headers": [(b"content-type", b"application/json")]}
        await send({"type": "http.response.start", **start})
        for number, piece in enumerate(pieces, 1):
            more = number < len(pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "headers": [(b"accept-encoding", accepted)]}
    asyncio.run(Compression(app)(scope, None, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return headers, [message["body"] for message in sent[1:]]


@pytest.mark.parametrize(
    ("name", "undo"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)]
)
def test_a_whole_answer(name, undo):
    headers, [body] = answer(name.encode(), LONG)
    assert headers["content-encoding"] == name
    assert headers["vary"] == "Accept-Encoding"
    assert headers["content-length"] == str(len(body))
    assert len(body) < len(LONG) / 5
    assert undo(body) == LONG


@pytest.mark.parametrize(("name", "bits"), [("gzip", 31), ("deflate", 15)])
def test_a_row_is_there_when_it_is_sent(name, bits):
    rows = [b"header\n", b"row 1\n", b"row 2\n", b""]
    headers, pieces = answer(name.encode(), *rows)
    assert "content-length" not in headers
    reader = zlib.decompressobj(bits)
    assert [reader.decompress(piece) for piece in pieces] == rows
    assert reader.eof


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("accepted", "body"), [(b"", LONG), (b"br", LONG), (b"gzip", b"short")])
def test_uncompressed_answers(accepted, body, method):
    headers, pieces = answer(accepted, body, method=method)
    assert "content-encoding" not in headers
    assert pieces == [body]


def test_a_cache_learns_that_the_coding_depends_on_the_request():
    assert answer(b"", LONG)[0]["vary"] == "Accept-Encoding"


def test_a_websocket_is_left_alone():
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))

    scope = {"type": "websocket", "headers": [(b"accept-encoding", b"gzip")]}
    asyncio.run(Compression(app)(scope, 1, 2))
    assert seen == [(scope, 1, 2)]
