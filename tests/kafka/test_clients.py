"""Clients of every kind: over websockets, such as never read, such as ask for too much."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from urllib.parse import quote

import h2.connection
import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from server.app import create_app
from server.context import AppContext
from tests.kafka.records import produce, unique
from tests.kafka.servers import EARLIEST, Hosted
from tests.waits import PATIENCE_S, NotYet, await_true

S, T, WIDE = (unique(stem).upper() for stem in ("s", "t", "wide"))
LONG = "x" * 10_000
WIDE_ROWS = 1_500
UPGRADE = (
    "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
)


@pytest.fixture(scope="module")
def server(broker, runtime, tmp_path_factory):
    """A service with a table over two partitions, and a stream of 15 MB."""
    properties = {
        "ksql__heartbeat__enable": "true",
        "ksql__advertised__listener": "http://here.example:7000",
        "ksql__query__pull__max__hourly__bandwidth__megabytes": "20",
    }
    state = tmp_path_factory.mktemp("state")
    hosted = Hosted(broker.bootstrap, runtime, state, unique("svc") + "_", **properties)
    try:
        hosted.start()
        hosted.http.ksql(
            f"CREATE STREAM {S} (K STRING KEY, A INT) "
            f"WITH (KAFKA_TOPIC='{S}', PARTITIONS=2, VALUE_FORMAT='JSON');"
            f"CREATE TABLE {T} AS SELECT K, COUNT(*) AS C FROM {S} GROUP BY K;"
            f"CREATE STREAM {WIDE} (A STRING) "
            f"WITH (KAFKA_TOPIC='{WIDE}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        produce(hosted.bootstrap, S, [(f"k{n % 10}", {"A": n}) for n in range(100)])
        produce(hosted.bootstrap, WIDE, [("k", {"A": LONG}) for _ in range(WIDE_ROWS)])
        await_true(
            "everything is counted",
            lambda: sum(r[1] for r in hosted.http.rows(f"SELECT * FROM {T};")) == 100,
        )
        yield hosted
    finally:
        hosted.stop()


@contextlib.contextmanager
def impatient(service, patience_s):
    """The service at a door that waits so long for a client that does not read."""
    context = AppContext(service)
    with listen("127.0.0.1", 0) as sock:
        web = HttpServer(create_app(context=context), [sock], 1, None, patience_s)
        web.start("http")
        try:
            yield sock.getsockname(), context
        finally:
            context.shut()
            web.stop()
            context.release()


def test_the_lag_of_each_partition_is_that_of_its_topic(server, http):
    query = f"CTAS_{T}"

    def status():
        [(host, partitions_of_host)] = (
            http.client.get("/clusterStatus").json()["clusterStatus"].items()
        )
        assert (host, partitions_of_host["hostAlive"]) == ("here.example:7000", True)
        if not (lags := partitions_of_host["hostStoreLags"]["stateStoreLags"]):
            raise NotYet("nobody has looked at its store")
        [store] = [each for each in lags if each.startswith(query)]
        assert store.endswith(f"#{T}")
        [held] = [
            v for k, v in partitions_of_host["activeStandbyPerQuery"].items() if k.startswith(query)
        ]
        assert held["activeStores"] == [T]
        assert [part["partition"] for part in held["activePartitions"]] == [0, 1]
        return lags[store]["lagByPartition"]

    def ends():
        offsets = server.service.node.admin.end_offsets([T])
        return {str(partition): end for (_, partition), end in offsets.items()}

    def all_there():
        """What is told once nothing is lacking; an older look may not know of the last ones."""
        hosts = status()
        last = {partition: lag["endOffsetPosition"] for partition, lag in hosts.items()}
        return last == ends() and all(p["offsetLag"] == 0 for p in hosts.values()) and hosts

    before = await_true("nothing is lacking", all_there)
    produce(server.bootstrap, S, [(f"k{n}", {"A": n}) for n in range(10)])
    await_true(
        "the store has moved on",
        lambda: (
            sum(p["currentOffsetPosition"] for p in status().values())
            > sum(p["currentOffsetPosition"] for p in before.values())
        ),
    )


def test_a_push_query_over_a_websocket(server, http):
    request = {"ksql": f"SELECT K, A FROM {S} EMIT CHANGES LIMIT 3;", "streamsProperties": EARLIEST}
    url = http.url.replace("http:", "ws:") + f"/ws/query?request={quote(json.dumps(request))}"
    with connect(url, proxy=None) as web:
        frames = [json.loads(frame) for frame in web]
        assert web.close_code == 1000
    assert [column["name"] for column in frames[0]] == ["K", "A"]
    assert [set(frame["row"]) for frame in frames[1:]] == [{"columns"}] * 3
    await_true("it has ended", lambda: server.running_streams == 0)


@pytest.mark.parametrize(
    ("sql", "last", "code"),
    [
        ("SELECT K, C FROM {} WHERE K='k3';", "row", 1000),
        ("SELECT * FROM NOTHING_THERE;", "error_code", 1003),
    ],
)
def test_a_pull_query_over_a_websocket_and_one_that_is_wrong(http, sql, last, code):
    request = quote(json.dumps({"ksql": sql.format(T)}))
    url = http.url.replace("http:", "ws:") + f"/ws/query?request={request}"
    frames = []
    with connect(url, proxy=None) as web, contextlib.suppress(ConnectionClosed):
        while True:
            frames.append(json.loads(web.recv(PATIENCE_S)))
    assert (last in frames[-1], web.close_code) == (True, code)


def test_a_client_that_never_reads_its_push_query(server, caplog):
    body = json.dumps({"sql": f"SELECT A FROM {WIDE} EMIT CHANGES;", "properties": EARLIEST})
    head = f"POST /query-stream HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    await_true("nobody else reads", lambda: not server.service.node.reads.pushes())
    with impatient(server.service, 2.0) as (place, context), socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE_S)
        client.connect(place)
        client.sendall(f"{head}\r\n{body}".encode())
        await_true("it has begun", lambda: context.running == 1)
        [push] = await_true("it is listed", server.service.node.reads.pushes)
        query = str(push.plan.query_id)
        await_true("it has ended", lambda: context.running == 0)
        await_true("nobody lists it", lambda: not server.service.node.reads.pushes())
    [record] = [each for each in caplog.records if each.message == "client_takes_nothing"]
    assert (record.path, record.query_id) == ("/query-stream", query)


def asking(place, kind):
    """A socket whose client has begun a push query, and reads nothing."""
    sql = f"SELECT A FROM {WIDE} EMIT CHANGES;"
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(PATIENCE_S)
    client.connect(place)
    if kind == "websocket":
        request = quote(json.dumps({"ksql": sql, "streamsProperties": EARLIEST}))
        target = f"/ws/query?request={request}"
        client.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\n{UPGRADE}\r\n\r\n".encode())
        return client
    body = json.dumps({"sql": sql, "properties": EARLIEST}).encode()
    if kind == "http":
        head = f"POST /query-stream HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
        client.sendall(f"{head}\r\n\r\n".encode() + body)
        return client
    frames = h2.connection.H2Connection()
    frames.initiate_connection()
    authority = (":scheme", "http"), (":authority", "localhost")
    frames.send_headers(1, [(":method", "POST"), *authority, (":path", "/query-stream")])
    frames.send_data(1, body, end_stream=True)
    client.sendall(frames.data_to_send())
    return client


def in_the_middle_of_a_frame(client):
    client.send(b"\x82")
    client.close()


def native_threads():
    """How many threads there are besides Python's: those of Kafka's client."""
    return psutil.Process().num_threads() - threading.active_count()


LEAVES = {
    "closes": socket.socket.close,
    "closes in a frame": in_the_middle_of_a_frame,
    "ends its side": lambda client: client.shutdown(socket.SHUT_WR),
}


@pytest.mark.parametrize("leaves", LEAVES)
def test_slow_readers_cost_little_and_leave_nothing(server, http, leaves):
    """Their consumers, threads and sockets; others continue."""
    kinds = ("http", "websocket", "h2") * 3
    await_true("nobody else reads", lambda: not server.service.node.reads.pushes())
    with impatient(server.service, 600.0) as (place, context):
        before = native_threads()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(asking(place, kind)) for kind in kinds]
            await_true("all read", lambda: context.running == len(kinds))
            sql = f"SELECT A FROM {WIDE} EMIT CHANGES LIMIT {WIDE_ROWS};"
            assert len(http.rows(sql)) == WIDE_ROWS
            assert http.rows(f"SELECT C FROM {T} WHERE K='k3';")
            assert context.running == len(kinds)
            for client in clients:
                LEAVES[leaves](client)
            await_true("their queries have ended", lambda: context.running == 0)
            await_true("nobody lists them", lambda: not server.service.node.reads.pushes())
    await_true("their threads are gone", lambda: native_threads() <= before)


def test_answers_are_compressed(http):
    sql = f"SELECT A FROM {WIDE} LIMIT 20;"
    plain = {"accept-encoding": "identity"}
    sent = {"json": {"sql": sql}}
    whole = httpx.post(f"{http.url}/query-stream", headers=plain, timeout=PATIENCE_S, **sent)
    assert whole.text.count(LONG) == 20
    packed = {"accept-encoding": "gzip"}
    with httpx.stream(
        "POST", f"{http.url}/query-stream", headers=packed, timeout=PATIENCE_S, **sent
    ) as answer:
        data = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(data) < len(whole.content) / 50
    assert gzip.decompress(data).splitlines()[1:] == whole.content.splitlines()[1:]


def test_too_large_requests_are_refused(http):
    """Runs last: then the service answers no more pull queries."""
    for _ in range(2):
        assert len(http.rows(f"SELECT A FROM {WIDE};")) == WIDE_ROWS
    refused = http.refused_query(f"SELECT * FROM {T} WHERE K='k3';")
    assert (refused["error_code"], refused["@type"]) == (42900, "generic_error")
    assert refused["message"] == "Host is at bandwidth rate limit for pull queries."
