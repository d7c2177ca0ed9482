"""A query is rebuilt next to itself while records keep coming, and cut over by difference."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.kafka.records import Feeder, create_topic, produce, read_all, topics, unique
from tests.kafka.servers import EARLIEST
from tests.waits import await_true

PARTITIONS = 4
WAITING = EARLIEST | {"ksql.upgrade.wait.ms": "60000"}
GUARANTEES = pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.proof), "exactly_once_v2"]
)


@pytest.fixture
def source(server, http):
    """A declared stream over a topic of its own; its name is the topic's."""
    name = unique("src").upper()
    create_topic(server.bootstrap, name, PARTITIONS)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, P INT, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    return name


def rows(server, topic):
    """The last value of each key; keys that are gone are left out."""
    last = {seen.key: seen.value for seen in read_all(server.bootstrap, topic)}
    return {key: value for key, value in last.items() if value is not None}


def await_rows(server, topic, expected):
    await_true(f"the rows of {topic}", lambda: rows(server, topic) == expected)


def hidden_topics(server, query_id):
    return {name for name in topics(server.bootstrap) if f"query_{query_id}-v" in name}


@GUARANTEES
def test_table_gets_another_filter_below_its_aggregate(server, http, source, guarantee):
    table = unique("cnt").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee}
    created = http.one(
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;", settings
    )
    query_id = created["commandStatus"]["queryId"]
    with Feeder(server.bootstrap, source, PARTITIONS) as feeder:
        feeder.await_sent(200)
        answer = http.one(
            f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
            f"SELECT K, COUNT(*) AS C FROM {source} WHERE N % 3 = 0 GROUP BY K;",
            settings | WAITING,
        )
        assert answer["commandStatus"]["message"] == f"Rebuild of {query_id} begun"
        assert not answer.get("warnings")
        feeder.await_sent(400)
        count = feeder.end()
    each = len(range(0, count, 3))
    await_rows(server, table, {f"k{part}": {"C": each} for part in range(PARTITIONS)})
    assert http.queries()[query_id] == "RUNNING"
    [[counted]] = http.rows(f"SELECT C FROM {table} WHERE K = 'k1';")
    assert counted == each
    [upgrade] = http.one(f"SHOW UPGRADES FOR {table};")["upgrades"]
    described = http.one(f"DESCRIBE UPGRADE '{upgrade['id']}';")["upgradeDescription"]
    assert described["difference"] == {"changed": 4, "added": 0, "removed": 0, "equal": 0}


def test_explain_has_evidence_of_a_rebuild(server, http, source):
    """Records and bytes of Kafka, the room of the disk, and both plans over the last records."""
    table = unique("cnt").upper()
    produce(server.bootstrap, source, [("a", {"N": n}) for n in range(10)])
    produce(server.bootstrap, source, [("b", {"N": 0})] * 5, partition=1)
    created = http.one(
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;", EARLIEST
    )
    await_rows(server, table, {"a": {"C": 10}, "b": {"C": 5}})
    before = topics(server.bootstrap)
    [described] = http.ksql(
        f"EXPLAIN CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, COUNT(*) AS C FROM {source} WHERE N > 4 GROUP BY K;",
        EARLIEST | {"ksql.upgrade.explain.sample": "100"},
    )
    report = described["queryDescription"]["upgrade"]
    [read] = report["reads"]
    assert (read["records"], read["lost"], read["sampled"]) == (15, 0, 15)
    assert read["bytes"] == sum(
        len(seen.key or "") + len(json.dumps(seen.value))
        for seen in read_all(server.bootstrap, source)
    )
    assert not read["compacted"]
    estimate = report["estimate"]
    assert (estimate["rateFrom"], estimate["seconds"]) == ("assumed", 1)
    assert estimate["freeBytes"] > 0
    assert estimate["resultsSince"] >= read["begins"] > 0
    sample = report["sample"]
    assert (sample["records"], sample["complete"], sample["different"]) == (15, True, 2)
    assert {row["key"]["K"]: (row["old"], row["new"]) for row in sample["rows"]} == {
        "a": ({"C": "10"}, {"C": "5"}),
        "b": ({"C": "5"}, None),
    }
    assert topics(server.bootstrap) == before
    assert http.queries()[created["commandStatus"]["queryId"]] == "RUNNING"


@pytest.mark.proof  # as query tests do on Spark
@GUARANTEES
def test_table_gets_another_grouping_and_only_the_difference_is_written(
    server, http, source, guarantee
):
    table = unique("cnt").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee, "cache.max.bytes.buffering": "0"}
    produce(server.bootstrap, source, [("a", {"N": n % 2}) for n in range(10)])
    produce(server.bootstrap, source, [("0", {"N": 0})] * 5, partition=1)
    http.ksql(
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;", settings
    )
    await_rows(server, table, {"a": {"C": 10}, "0": {"C": 5}})
    before = len(read_all(server.bootstrap, table))
    http.ksql(
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS SELECT "
        f"CAST(N AS STRING) AS K, COUNT(*) AS C FROM {source} GROUP BY CAST(N AS STRING);",
        settings | WAITING,
    )
    await_rows(server, table, {"0": {"C": 10}, "1": {"C": 5}})
    written = len(read_all(server.bootstrap, table)) - before
    assert written == 3  # "0" is another row, "1" is new, "a" is gone


@pytest.mark.proof  # as query tests do on Spark
@GUARANTEES
def test_stream_is_rebuilt_from_another_source(server, http, source, guarantee):
    stream, other = unique("out").upper(), unique("src").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee}
    create_topic(server.bootstrap, other, PARTITIONS)
    http.ksql(
        f"CREATE STREAM {other} (K STRING KEY, P INT, N INT) "
        f"WITH (KAFKA_TOPIC='{other}', VALUE_FORMAT='JSON');"
    )
    http.ksql(f"CREATE STREAM {stream} AS SELECT K, P, N FROM {source};", settings)
    produce(server.bootstrap, source, [("a", {"P": 0, "N": n}) for n in range(5)])
    produce(server.bootstrap, other, [("a", {"P": 1, "N": n}) for n in range(5)])
    await_true("the results", lambda: len(read_all(server.bootstrap, stream)) == 5)
    http.ksql(
        f"CREATE OR REPLACE STREAM {stream} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, P, N FROM {other};",
        settings | WAITING,
    )
    produce(server.bootstrap, source, [("a", {"P": 0, "N": 5})])
    produce(server.bootstrap, other, [("a", {"P": 1, "N": 5})])
    await_true("another result", lambda: len(read_all(server.bootstrap, stream)) > 5)
    results = Counter((s.value["P"], s.value["N"]) for s in read_all(server.bootstrap, stream))
    assert results == Counter([*((0, n) for n in range(5)), (1, 5)])


def test_rebuild_survives_a_restart(server, http, source):
    table = unique("cnt").upper()
    create = f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;"
    created = http.one(create)
    query_id = created["commandStatus"]["queryId"]
    produce(server.bootstrap, source, [("a", {"N": n}) for n in range(10)])
    await_rows(server, table, {"a": {"C": 10}})
    http.ksql(
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, COUNT(*) AS C FROM {source} WHERE N > 4 GROUP BY K;"
    )
    server.stop()
    again = server.start()
    await_rows(server, table, {"a": {"C": 5}})
    produce(server.bootstrap, source, [("a", {"N": 7})])
    await_rows(server, table, {"a": {"C": 6}})
    again.await_queries({**again.queries(), query_id: "RUNNING"})


@GUARANTEES
def test_rollback_brings_the_former_rows_back(server, http, source, guarantee):
    table = unique("cnt").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee}
    produce(server.bootstrap, source, [("a", {"N": n}) for n in range(10)])
    produce(server.bootstrap, source, [("b", {"N": 1})], partition=1)
    created = http.one(
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;", settings
    )
    query_id = created["commandStatus"]["queryId"]
    await_rows(server, table, {"a": {"C": 10}, "b": {"C": 1}})
    http.ksql(
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, COUNT(*) AS C FROM {source} WHERE N > 4 GROUP BY K;",
        settings | WAITING,
    )
    await_rows(server, table, {"a": {"C": 5}})
    produce(server.bootstrap, source, [("a", {"N": 0}), ("a", {"N": 9})])
    await_rows(server, table, {"a": {"C": 6}})
    answer = http.one(f"ROLLBACK UPGRADE OF {table};", settings | WAITING)
    assert answer["commandStatus"]["message"] == f"Rollback of {query_id} begun"
    await_rows(server, table, {"a": {"C": 12}, "b": {"C": 1}})
    produce(server.bootstrap, source, [("b", {"N": 0})], partition=1)
    await_rows(server, table, {"a": {"C": 12}, "b": {"C": 2}})


def test_abort_leaves_no_trace(server, http, source):
    table = unique("cnt").upper()
    created = http.one(f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;")
    query_id = created["commandStatus"]["queryId"]
    http.ksql(f"PAUSE {query_id};")  # nothing is cut over meanwhile
    http.ksql(
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='rebuild') AS "
        f"SELECT K, COUNT(*) AS C FROM {source} WHERE N > 4 GROUP BY K;"
    )
    assert hidden_topics(server, query_id)
    http.ksql(f"ABORT UPGRADE OF {table};")
    await_true("no hidden topic", lambda: not hidden_topics(server, query_id))
    http.ksql(f"RESUME {query_id};")
    produce(server.bootstrap, source, [("a", {"N": 1})])
    await_rows(server, table, {"a": {"C": 1}})
    [upgrade] = http.one(f"SHOW UPGRADES FOR {table};")["upgrades"]
    assert upgrade["status"] == "aborted"
