"""Sessions and last results of windows on a real service, over a replacement in place."""

from __future__ import annotations

import json
import time
from http import HTTPStatus

import pytest

from ksql.core.types.times import format_timestamp
from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import DELIMITED, V1_JSON, Refused
from tests.waits import await_true

NOT_READY = 503
EVERY_CHANGE = {"auto.offset.reset": "earliest", "cache.max.bytes.buffering": "0"}


@pytest.fixture
def source(server, http):
    """A declared stream whose records have a time of their own."""
    name = unique("src").upper()
    create_topic(server.bootstrap, name)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, T BIGINT, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', TIMESTAMP='T');"
    )
    return name


def feed(server, source, *records):
    produce(server.bootstrap, source, [(key, {"T": time, "N": n}) for key, time, n in records])


def await_rows(http, text, expected):
    await_true(f"{expected} from {text}", lambda: ready_rows(http, text) == expected)


def ready_rows(http, text):
    """The rows, or None as long as the table is being filled."""
    try:
        return http.rows(text)
    except Refused as refused:
        if refused.status != NOT_READY:
            raise
        return None


def test_sessions_merge_across_a_replacement_that_appends_an_aggregate(server, http, source):
    sink = unique("ses").upper()
    text = "SELECT K, COUNT(*) AS C{} FROM {} WINDOW SESSION (10 SECONDS) GROUP BY K;"
    created = http.one(f"CREATE TABLE {sink} AS {text.format('', source)}", EVERY_CHANGE)
    feed(server, source, ("a", 1_000, 1), ("a", 19_000, 2), ("b", 50_000, 3))
    pull = f"SELECT K, WINDOWSTART, WINDOWEND, C FROM {sink} WHERE K = 'a'"
    await_rows(http, f"{pull};", [["a", 1_000, 1_000, 1], ["a", 19_000, 19_000, 1]])
    await_rows(http, f"{pull} AND WINDOWSTART > 1000;", [["a", 19_000, 19_000, 1]])
    await_rows(http, f"{pull} AND WINDOWEND < 19000;", [["a", 1_000, 1_000, 1]])

    statement = f"CREATE OR REPLACE TABLE {sink} AS {text.format(', SUM(N) AS S', source)}"
    entity = http.one(statement, EVERY_CHANGE)
    assert entity["commandStatus"]["queryId"] == created["commandStatus"]["queryId"]
    assert entity["upgrade"]["classes"] == ["schema evolution"]
    feed(server, source, ("a", 10_000, 5), ("b", 50_000, 7))
    pull = f"SELECT K, WINDOWSTART, WINDOWEND, ROWTIME, C, S FROM {sink} WHERE K = "
    await_rows(http, f"{pull}'a';", [["a", 1_000, 19_000, 19_000, 3, 5]])
    await_rows(http, f"{pull}'b';", [["b", 50_000, 50_000, 50_000, 2, 7]])


def test_final_results_wait_across_a_replacement(server, http, source):
    sink = unique("fin").upper()
    text = (
        "SELECT K, COUNT(*) AS C{} FROM {} WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 1 DAY, "
        "GRACE PERIOD 5 SECONDS) GROUP BY K HAVING COUNT(*) > 1 EMIT FINAL;"
    )
    http.one(f"CREATE TABLE {sink} AS {text.format('', source)}", EVERY_CHANGE)
    pull = f"SELECT K, WINDOWSTART, C FROM {sink} WHERE K = 'a';"
    feed(server, source, ("a", 1_000, 1), ("a", 12_000, 2), ("a", 9_000, 3), ("a", 15_000, 4))
    await_rows(http, pull, [["a", 0, 2]])
    http.one(f"CREATE OR REPLACE TABLE {sink} AS {text.format(', MAX(N) AS M', source)}")
    feed(server, source, ("a", 13_000, 9), ("a", 30_000, 1))
    pull = f"SELECT K, WINDOWSTART, C, M FROM {sink} WHERE K = 'a' AND WINDOWSTART = 10000;"
    await_rows(http, pull, [["a", 10_000, 3, 9]])


def answer(http, text, accept):
    """The elements of a pull query's answer."""
    response = http.client.post("/query-stream", json={"sql": text}, headers={"accept": accept})
    assert response.status_code == HTTPStatus.OK, response.text
    if accept == V1_JSON:
        return response.json()
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_pull_query_says_which_windows_retention_hides(server, http, source):
    sink = unique("kept").upper()
    http.one(
        f"CREATE TABLE {sink} AS SELECT K, COUNT(*) AS C FROM {source} "
        "WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 1 MINUTE, GRACE PERIOD 0 SECONDS) GROUP BY K;",
        EVERY_CHANGE,
    )
    late = int(time.time()) // 10 * 10_000
    early = late - 3_600_000
    feed(server, source, ("a", early + 5_000, 1), ("b", late, 2))
    pull = f"SELECT K, WINDOWSTART FROM {sink}"
    await_rows(http, f"{pull} WHERE K = 'b';", [["b", late]])
    note = (
        f"RETENTION 1 MINUTE hides windows that begin from {format_timestamp(early)} to "
        f"{format_timestamp(late - 60_000)}; the topic {sink} may still have them"
    )
    for text, rows in ((f"{pull} WHERE K = 'a';", []), (f"{pull};", [["b", late]])):
        header, *windows = answer(http, text, DELIMITED)
        assert (header["notes"], windows) == ([note], rows)
        header, *windows = answer(http, text, V1_JSON)
        assert header["header"]["notes"] == [note]
        assert [each["row"]["columns"] for each in windows] == rows
    for text in (f"{pull} WHERE K = 'b' AND WINDOWSTART >= {late};", f"{pull} WHERE K = 'c';"):
        shown = answer(http, text, DELIMITED)[0]
        assert ("notes" in shown) == (" 'c'" in text)  # it may have had windows of the key, too
    assert any(seen.key.startswith("a") for seen in read_all(server.bootstrap, sink))
