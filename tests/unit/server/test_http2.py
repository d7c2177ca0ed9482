"""The REST interface as clients of ksqlDB use it: one HTTP/2 connection for everything."""

from __future__ import annotations

import json
import zlib
from urllib.parse import urlsplit

import h2.errors
import h2.events
import httpx
import pytest

from server.wire import DELIMITED, V1_JSON
from tests.unit.http.clients import PATIENCE_S, Frames
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.unit.server.web import serving

SQL = json.dumps({"sql": "SELECT;"}).encode()


def connected(url):
    return Frames(urlsplit(url).port)


def pieces(client, number):
    kind = h2.events.DataReceived
    events = [e.data for e in client.seen if isinstance(e, kind) and e.stream_id == number]
    return [piece for piece in events if piece]


def ask(client, path, body=b"", **headers):
    number = client.request(path, method="POST", end=False, **headers)
    client.send(number, body, end=True)
    return number


def test_each_value_has_a_frame_of_its_own():
    """ksqldb-client takes a frame for one JSON value, as ksqlDB sends them."""
    batches = [rows((1, "a"), (2, "b")), rows((3, "c"))]
    service = FakeService(stream=lambda: FakeStream(batches, ends_with="Limit Reached"))
    with serving(service) as (url, _), connected(url) as client:
        number = ask(client, "/query-stream", SQL, accept=DELIMITED)
        client.whole(number)
        header, *lines = map(json.loads, pieces(client, number))
        assert header["columnNames"] == ["ID", "NAME"]
        assert lines == [[1, "a"], [2, "b"], [3, "c"]]
        number = ask(client, "/query-stream", SQL, accept=V1_JSON)
        assert len(json.loads(client.whole(number))) == 5


@pytest.mark.parametrize(("coding", "bits"), [("gzip", 31), ("deflate", 15)])
def test_compressed_rows_are_there_when_they_are_sent(coding, bits):
    """The query goes on: its rows have come all the same."""
    service = FakeService(stream=lambda: FakeStream([rows((1, "a")), rows((2, "b"))]))
    with serving(service) as (url, app), connected(url) as client:
        more = {"accept": DELIMITED, "accept-encoding": coding}
        number = ask(client, "/query-stream", SQL, **more)
        assert client.headers(number)["content-encoding"] == coding
        reader, text, seen = zlib.decompressobj(bits), b"", 0
        while text.count(b"\n") < 3:
            client.until(lambda seen=seen: len(client.body(number)) > seen)
            data = client.body(number)
            text += reader.decompress(data[seen:])
            seen = len(data)
        assert text.splitlines()[1:] == [b'[1,"a"]', b'[2,"b"]']
        assert app.state.context.running == 1


def test_rows_are_acknowledged_while_the_request_is_open():
    service = FakeService()
    with serving(service) as (url, _), connected(url) as client:
        number = client.request("/inserts-stream", method="POST", end=False)
        client.send(number, b'{"target":"S"}\n')
        assert client.headers(number)[":status"] == "200"
        text = b""
        for sent in range(3):
            client.send(number, b'{"A":%d}\n' % sent)
            text += b'{"status":"ok","seq":%d}\n' % sent
            client.until(lambda text=text: client.body(number) == text)
        client.send(number, b"", end=True)
        assert client.whole(number) == text


def test_a_stream_that_is_reset_ends_its_query_only():
    streams = [FakeStream(), FakeStream()]
    service = FakeService(stream=iter(streams).__next__)
    with serving(service) as (url, _), connected(url) as client:
        numbers = [ask(client, "/query-stream", SQL)]
        client.until(lambda: bool(client.body(numbers[0])))
        numbers.append(ask(client, "/query-stream", SQL))
        client.until(lambda: bool(client.body(numbers[1])))
        client.h2.reset_stream(numbers[0], h2.errors.ErrorCodes.CANCEL)
        client.flush()
        assert streams[0].ended.wait(PATIENCE_S)
        assert client.whole(ask(client, "/close-query", b'{"queryId":"transient_S_1"}')) == b""
        assert not streams[1].ended.is_set()
    assert streams[1].ended.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"authority": "evil.example"}, "421"), ({"origin": "https://evil.example"}, "403")],
)
def test_foreign_pages_are_refused_before_the_body_is_read(headers, status, monkeypatch):
    monkeypatch.setattr("ksql.http.http2._LINGER_S", 0.1)
    service = FakeService()
    with serving(service) as (url, _), connected(url) as client:
        number = client.request("/ksql", method="POST", end=False, **headers)
        assert client.headers(number)[":status"] == status
        client.until(lambda: bool(client.of(h2.events.StreamReset, number)))
        assert json.loads(client.body(number))["error_code"] // 100 == int(status)
    assert service.calls == []


def test_a_body_of_any_length_is_bounded():
    with serving(FakeService()) as (url, app), httpx.Client(http1=False, http2=True) as client:
        longest = app.state.max_line_bytes
        parts = [b'{"ksql": "', *[b" " * 1_000_000] * (longest // 1_000_000 + 1)]
        answer = client.post(f"{url}/ksql", content=b"".join(parts))
        assert answer.status_code == 413
        assert client.post(f"{url}/ksql", json={"ksql": "SHOW TABLES;"}).status_code == 200
