"""Queries that a record ends: what users find in the answers and in the processing log."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ksql.sql.catalog.model import Topic
from tests.kafka.records import produce, read_all, unique
from tests.kafka.test_registry import url_of
from tests.waits import PATIENCE_S, await_true

STRICT = """{"type": "record", "name": "Strict", "fields": [
  {"name": "V", "type": "string"}]}"""


@pytest.fixture
def source(http):
    name = unique("src").upper()
    http.ksql(
        f"CREATE STREAM {name} (V STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    return name


def log_of(server, query_id: str) -> list[dict[str, Any]]:
    """The processing log's entries about a query."""
    entries = [record.value for record in read_all(server.bootstrap, server.service.node.log_topic)]
    return [each for each in entries if each["logger"].split(".")[1] == query_id]


def await_entry(server, query_id: str, kind: int) -> dict[str, Any]:
    """An entry of that type about a query."""
    entries: list[dict[str, Any]] = await_true(
        f"an entry of type {kind}",
        lambda: [e["message"] for e in log_of(server, query_id) if e["message"]["type"] == kind],
    )
    return entries[0]


def the_query(http, sink: str) -> str:
    (query_id,) = [str(q) for q in http.queries() if f"_{sink}_" in q]
    return query_id


def test_a_row_that_the_sink_cannot_hold(server, http, source):
    sink = unique("strict").upper()
    subject = f"{url_of(http)}/subjects/{sink}-value/versions"
    schema_id = httpx.post(subject, json={"schema": STRICT}, timeout=PATIENCE_S).json()["id"]
    http.ksql(
        f"CREATE STREAM {sink} WITH (KAFKA_TOPIC='{sink}', VALUE_FORMAT='AVRO', "
        f"VALUE_SCHEMA_ID={schema_id}) AS SELECT V FROM {source};"
    )
    query_id = the_query(http, sink)
    produce(server.bootstrap, source, [(None, {"V": "a"}), (None, {"V": None})])
    error = await_entry(server, query_id, 3)["serializationError"]
    assert error["errorMessage"] == f"Error serializing message to topic: {sink}"
    assert "null used for required field" in error["cause"][0]
    ended = await_entry(server, query_id, 4)["kafkaStreamsThreadError"]
    assert "Unable to serialize record" in ended["cause"][0]
    http.await_error(query_id, "Unable to serialize record")


def test_a_record_that_does_not_decode_where_that_is_an_error(server, http, source):
    sink = unique("whole").upper()
    settings = {"ksql.fail.on.deserialization.error": "true", "auto.offset.reset": "earliest"}
    http.ksql(f"CREATE STREAM {sink} AS SELECT V FROM {source};", settings)
    query_id = the_query(http, sink)
    produce(server.bootstrap, source, [(None, b"no JSON")])
    assert await_entry(server, query_id, 0)["deserializationError"]["topic"] == source
    assert await_entry(server, query_id, 4)


@pytest.mark.parametrize("group", ["", pytest.param(" GROUP BY V", marks=pytest.mark.proof)])
def test_a_record_that_is_too_large_for_its_topic(server, http, source, group):
    strict, lenient = unique("strict").upper(), unique("lenient").upper()
    kind, what = ("TABLE", "V, COUNT(*) AS N") if group else ("STREAM", "V")
    settings = {"ksql.fail.on.production.error": "false", "auto.offset.reset": "earliest"}
    select = f"AS SELECT {what} FROM {source}{group};"
    for sink in (strict, lenient):
        change = Topic(sink, 1, configs={"max.message.bytes": "2000"})
        server.service.node.admin.create(change)
    http.ksql(f"CREATE {kind} {strict} {select}")
    http.ksql(f"CREATE {kind} {lenient} {select}", settings)
    failing, going = the_query(http, strict), the_query(http, lenient)
    small = [(None, {"V": f"{n}"}) for n in range(200)]  # together more than the topics take
    produce(server.bootstrap, source, [*small, (None, {"V": "x" * 5000}), (None, {"V": "a"})])
    await_true("the small ones come", lambda: len(read_all(server.bootstrap, lenient)) == 201)
    for query_id in (failing, going):
        message = await_entry(server, query_id, 2)["productionError"]["errorMessage"]
        assert "too large" in message
    assert http.queries()[going] == "RUNNING"
    ended = await_entry(server, failing, 4)["kafkaStreamsThreadError"]["cause"][0]
    assert "max.message.bytes" in ended
    assert "ksql.fail.on.production.error" in ended


@pytest.mark.parametrize(
    "guarantee",
    [pytest.param("at_least_once", marks=pytest.mark.proof), "exactly_once_v2"],
)
@pytest.mark.parametrize(
    ("setting", "value", "wider", "columns", "bad"),
    [
        (
            "message.timestamp.after.max.ms",
            "3600000",
            "9200000000000000",
            "ROWTIME, K, V",
            f"{2**42}, 'k', 'bad'",
        ),
        ("cleanup.policy", "compact", "delete", "V", "'bad'"),
    ],
)
def test_a_record_that_its_topic_refuses(
    server, http, guarantee, setting, value, wider, columns, bad
):
    source = unique("src").upper()
    http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, V STRING) "
        f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    strict, lenient = unique("strict").upper(), unique("lenient").upper()
    settings = {"processing.guarantee": guarantee, "auto.offset.reset": "earliest"}
    for sink, fail in ((strict, "true"), (lenient, "false")):
        server.service.node.admin.create(Topic(sink, 1, configs={setting: value}))
        http.ksql(
            f"CREATE STREAM {sink} AS SELECT K, V FROM {source};",
            settings | {"ksql.fail.on.production.error": fail},
        )
    for values in ("'a', '1'", "'b', '2'"):
        http.ksql(f"INSERT INTO {source} (K, V) VALUES ({values});")
        http.ksql(f"INSERT INTO {source} ({columns}) VALUES ({bad});")
    failing, going = the_query(http, strict), the_query(http, lenient)
    await_true("the others come", lambda: len(read_all(server.bootstrap, lenient)) == 2)
    for query_id in (failing, going):
        message = await_entry(server, query_id, 2)["productionError"]["errorMessage"]
        assert setting in message
    assert http.queries()[going] == "RUNNING"
    ended = await_entry(server, failing, 4)["kafkaStreamsThreadError"]["cause"][0]
    assert setting in ended
    assert "ksql.fail.on.production.error" in ended
    server.service.node.admin.alter_configs(strict, {setting: wider})
    await_true(
        "all come, if only at least once",
        lambda: {r.value["V"] for r in read_all(server.bootstrap, strict)} == {"1", "bad", "2"},
    )
