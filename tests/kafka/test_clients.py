"""Clients of every kind: over websockets, such as never read, such as ask for too much."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ksql.http.hosting import HttpServer
from server.app import create_app
from server.context import AppContext
from tests.kafka.records import produce, unique
from tests.kafka.servers import EARLIEST, Hosted
from tests.waits import PATIENCE_S, NotYet, await_true

S, T, WIDE = (unique(stem).upper() for stem in ("s", "t", "wide"))
LONG = "x" * 10_000
WIDE_ROWS = 1_500


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
    with socket.create_server(("127.0.0.1", 0)) as sock:
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
