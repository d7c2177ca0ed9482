"""What belongs to a query stays with it: settings, overloads, the states of its aggregates."""

from __future__ import annotations

import pytest

from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import hosted
from tests.kafka.test_crashes import Scene
from tests.waits import await_true

EOS = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}
PLAIN: dict[str, str] = {}
SLOW = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": "0",
    "ksql.query.trigger.interval.ms": "20000",
}


def declared(name):
    return (
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


def await_values(bootstrap, topic, count):
    """The values of the topic's committed records, once there are so many."""

    def full_topic():
        seen = [s.value for s in read_all(bootstrap, topic)]
        return seen if len(seen) >= count else None

    return await_true(f"{count} records in {topic}", full_topic)


@pytest.mark.proof
def test_aggregate_ignores_records_of_an_aborted_transaction(broker, runtime, tmp_path):
    scene = Scene(broker.bootstrap, runtime, tmp_path)
    text = (
        f"CREATE OR REPLACE TABLE {scene.table} AS "
        f"SELECT K, COUNT(*) AS C, {{}}(N) AS X FROM {scene.source} GROUP BY K;"
    )
    server = scene.crashing("switched", "CREATE OR REPLACE")
    server.http.ksql(declared(scene.source))
    server.http.ksql(
        f"CREATE TABLE {scene.table} AS SELECT K, COUNT(*) AS C FROM {scene.source} GROUP BY K;",
        SLOW,
    )
    produce(scene.bootstrap, scene.source, [("k", {"N": 100})])
    await_values(scene.bootstrap, scene.table, 1)
    # the old plan rests for seconds: the new one's first batch takes this record
    produce(scene.bootstrap, scene.source, [("x", {"N": 100})])
    scene.crash(server, text.format("SUM"))
    assert await_values(scene.bootstrap, scene.table, 2)[1] == {"C": 1, "X": 100}
    with scene.sound() as http:
        produce(scene.bootstrap, scene.source, [("k", {"N": 1})])
        assert await_values(scene.bootstrap, scene.table, 3)[-1] == {"C": 2}
        http.ksql(text.format("MAX"), SLOW)
        # a group that the old plan has not touched since: what the crash left lies in it
        produce(scene.bootstrap, scene.source, [("x", {"N": 1})])
        assert await_values(scene.bootstrap, scene.table, 4)[-1] == {"C": 2, "X": 1}


def test_a_replacement_from_a_plain_session_writes_exactly_once_too(server, http):
    source, sink = unique("src").upper(), unique("dst").upper()
    http.ksql(declared(source))
    http.ksql(f"CREATE STREAM {sink} AS SELECT * FROM {source};", EOS)
    produce(server.bootstrap, source, [("k", {"N": 1})])
    await_values(server.bootstrap, sink, 1)
    query = next(iter(http.queries()))
    entity = http.one(f"CREATE OR REPLACE STREAM {sink} AS SELECT * FROM {source};", PLAIN)
    assert entity["upgrade"]["classes"] == ["transparent"]
    assert entity["upgrade"]["inherited"] == [
        "auto.offset.reset = earliest (a new query would have latest)",
        "processing.guarantee = exactly_once_v2 (a new query would have at_least_once)",
    ]
    text = f"CREATE OR REPLACE STREAM {sink} AS SELECT * FROM {source} WHERE N > 0;"
    assert http.one(text, PLAIN)["upgrade"]["classes"] == ["data selection"]
    assert exactly_once(server, query)
    produce(server.bootstrap, source, [("k", {"N": 2})])
    assert await_values(server.bootstrap, sink, 2) == [{"N": 1}, {"N": 2}]
    stated = {"processing.guarantee": "at_least_once"}
    report = http.one(text, stated)["upgrade"]
    assert [change["text"] for change in report["changes"]] == [
        "exactly_once_v2 became at_least_once"
    ]
    assert not exactly_once(server, query)


def exactly_once(server, query_id):
    plan = server.service.node.engine.catalog.queries[query_id].plan
    return '["processing.guarantee","exactly_once_v2"]' in plan


FUNCTION = """
from ksql.functions.udf import udf

@udf
def mark(x: {}) -> str:
    return "{}"
"""


def test_a_query_whose_overload_is_gone_is_in_error_and_says_why(broker, runtime, tmp_path):
    files, service = tmp_path / "ext", unique("svc") + "_"
    source, sink = unique("src").upper(), unique("dst").upper()
    (files).mkdir()
    options = {"ksql__extension__dir": str(files)}
    earliest = {"auto.offset.reset": "earliest"}

    def again():
        return hosted(broker.bootstrap, runtime, tmp_path / "state", service, **options)

    (files / "b.py").write_text(FUNCTION.format("int", "a number"))
    with again() as http:
        http.ksql(declared(source))
        http.ksql(f"CREATE STREAM {sink} AS SELECT K, MARK(N) AS M FROM {source};", earliest)
        produce(broker.bootstrap, source, [("k", {"N": 1})])
        await_values(broker.bootstrap, sink, 1)
    (files / "a.py").write_text(FUNCTION.format("str", "a text"))
    with again() as http:
        produce(broker.bootstrap, source, [("k", {"N": 2})])
        assert await_values(broker.bootstrap, sink, 2) == [{"M": "a number"}] * 2
    (files / "b.py").unlink()
    with again() as http:
        [query] = http.queries()
        http.await_error(query, "which is not there any more")
