"""Queries hosted in memory: what comes out of their topics."""

from __future__ import annotations

import struct

import pytest

from ksql.core.errors import QueryFailed
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.exec.memory.driver import MemoryTopics
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
T = "CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"


def test_queries_feed_each_other_until_nothing_is_left():
    world = World(
        S,
        "CREATE STREAM S1 AS SELECT * FROM S WHERE A > 1;",
        "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S1 GROUP BY K;",
        "CREATE TABLE BIG AS SELECT * FROM N WHERE C > 1;",
    )
    world.feed("s", *(("k", {"A": a}, a) for a in range(4)))
    assert world.out("S1") == [
        ("k", {"A": 2, "B": None}, 2),
        ("k", {"A": 3, "B": None}, 3),
    ]
    assert world.out("N") == [("k", {"C": 1}, 2), ("k", {"C": 2}, 3)]
    assert world.out("BIG") == [("k", {"C": 2}, 3)]


def test_several_topics_are_read_in_the_order_of_writing():
    world = World(S, T, "CREATE STREAM J AS SELECT S.K, A, N FROM S LEFT JOIN T ON S.K = T.ID;")
    world.feed("s", ("k", {"A": 1}, 9))
    world.feed("t", ("k", {"N": "x"}, 5))
    world.feed("s", ("k", {"A": 2}, 1))
    assert world.out("J") == [
        ("k", {"A": 1, "N": None}, 9),
        ("k", {"A": 2, "N": "x"}, 1),
    ]


def test_windowed_keys_carry_their_start():
    world = World(
        S,
        "CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S "
        "WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;",
        "CREATE STREAM R (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='W', "
        "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS');",
        "CREATE STREAM RR AS SELECT K, WINDOWSTART AS WS, WINDOWEND AS WE, C FROM R;",
    )
    world.feed("s", ("k", {"A": 1}, 13), ("k", {"A": 1}, 17))
    keys = [r.key for r in world.topics.records["W"]]
    assert keys == [b"k" + struct.pack(">q", 10)] * 2
    assert [r.value for r in world.topics.records["RR"]] == [
        b'{"WS":10,"WE":20,"C":1}',
        b'{"WS":10,"WE":20,"C":2}',
    ]


def test_a_tables_filter_deletes_what_passes_no_more():
    world = World(T, "CREATE TABLE X AS SELECT * FROM T WHERE N = 'x';")
    world.feed(
        "t", ("a", {"N": "x"}, 1), ("a", {"N": "y"}, 2), ("a", {"N": "y"}, 3), ("a", None, 4)
    )
    assert world.out("X") == [("a", {"N": "x"}, 1), ("a", None, 2)]


def test_a_count_over_a_table_follows_its_changes():
    world = World(T, "CREATE TABLE X AS SELECT N, COUNT(*) AS C FROM T GROUP BY N;")
    world.feed("t", ("a", {"N": "x"}, 1), ("b", {"N": "x"}, 2), ("a", {"N": "y"}, 3))
    world.feed("t", ("b", None, 4))
    assert world.last("X") == {"x": {"C": 0}, "y": {"C": 1}}


def test_times_from_a_column_and_records_before_the_epoch():
    world = World(
        "CREATE STREAM E (A BIGINT) WITH (KAFKA_TOPIC='e', PARTITIONS=1, TIMESTAMP='A');",
        "CREATE STREAM X AS SELECT A, ROWTIME AS R FROM E;",
    )
    world.feed("e", (None, {"A": 5}, 1), (None, {"A": None}, 2), (None, {"A": -3}, 3))
    assert world.out("X") == [(None, {"A": 5, "R": 5}, 5)]
    assert len(world.runner.errors()) == 2


def test_errors_of_expressions_are_reported_and_give_null():
    world = World(S, "CREATE STREAM X AS SELECT K, CAST(B AS INT) + 1 AS C, A / 0 AS D FROM S;")
    world.feed("s", ("k", {"A": 1, "B": "no"}, 1))
    assert world.out("X") == [("k", {"C": None, "D": None}, 1)]
    assert world.runner.errors()


def test_unknown_query_is_refused():
    world = World(S)
    nothing = QueryVersion(QueryId("NOTHING"))
    world.runner.stop(nothing)
    world.runner.forget(nothing)
    world.runner.drain([nothing])
    assert world.runner.errors() == []


def test_topics():
    topics = MemoryTopics()
    topics.append("t", b"k", None, 3, [("h", None)])
    [stored] = topics.records["t"]
    assert (stored.key, stored.value, stored.timestamp, stored.headers) == (
        b"k",
        None,
        3,
        [("h", None)],
    )
    assert topics.describe("t") is None
    topics.delete(["t", "x"])
    assert topics.records == {}


TS = """
CREATE STREAM TS (K STRING KEY, T STRING, D DECIMAL(3, 1), A ARRAY<INT>) WITH (
  KAFKA_TOPIC='ts', PARTITIONS=1, TIMESTAMP='t', TIMESTAMP_FORMAT='yyyy-MM-dd');
"""


@pytest.mark.parametrize(
    ("settings", "query", "record", "message", "detail"),
    [
        (
            {"ksql.timestamp.throw.on.invalid": "true"},
            "CREATE STREAM X AS SELECT * FROM TS;",
            {"T": "never"},
            "Fatal user code error in TimestampExtractor callback for record",
            "never",
        ),
        (
            {"ksql.timestamp.throw.on.invalid": "true"},
            "CREATE STREAM X AS SELECT * FROM TS;",
            {"T": None},
            "Fatal user code error in TimestampExtractor callback for record",
            "the timestamp column is null",
        ),
        (
            {"ksql.fail.on.deserialization.error": "true"},
            "CREATE STREAM X AS SELECT * FROM TS;",
            {"T": "2020-01-01", "A": 1},
            "Deserialization exception handler is set to fail upon a deserialization error.",
            "the value of a record of topic ts",
        ),
        (
            {},
            "CREATE TABLE X AS SELECT K, SUM(D) AS S FROM TS GROUP BY K;",
            {"T": "2020-01-01", "D": 90},
            "Exception caught in process",
            "Numeric field overflow",
        ),
    ],
)
def test_records_that_end_the_query(settings, query, record, message, detail):
    world = World(TS)
    world.run(query, **settings)
    good = ("k", {"T": "2020-01-01", "D": 60, "A": [1]}, 0)
    world.feed("ts", good)
    with pytest.raises(QueryFailed) as caught:
        world.feed("ts", ("k", record, 1))
    assert caught.value.message == message
    assert detail in caught.value.detail
    assert str(caught.value) == f"{message.rstrip('.')}: {caught.value.detail}"
    assert len(world.out("X")) == 1


def test_the_same_records_are_skipped_otherwise():
    world = World(TS, "CREATE STREAM X AS SELECT * FROM TS;")
    world.feed("ts", ("k", {"T": "never"}, 1), ("k", {"T": "2020-01-01", "A": 1}, 2))
    assert world.out("X") == []
    assert [operator for operator, _ in world.runner.errors()] == [
        "timestamp",
        "KsqlTopic.Source.deserializer",
    ]


TABLE_TS = """
CREATE TABLE D (K BIGINT PRIMARY KEY, T BIGINT, G STRING) WITH (
  KAFKA_TOPIC='d', PARTITIONS=1, TIMESTAMP='{}');
CREATE TABLE X AS SELECT K, G FROM D;
CREATE TABLE N AS SELECT G, COUNT(*) AS C FROM D GROUP BY G;
"""


@pytest.mark.parametrize(("column", "deleted"), [("T", 2_000), ("K", 7)])
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_deletion_counts_though_it_has_no_column_with_its_time(column, deleted, strict):
    world = World()
    settings = {"ksql.timestamp.throw.on.invalid": strict}
    world.run(TABLE_TS.format(column), **settings)
    world.feed("d", (7, {"T": 7, "G": "g"}, 1_000), (7, None, 2_000))
    assert [(r.value, r.timestamp) for r in world.topics.records["X"]] == [
        (b'{"G":"g"}', 7),
        (None, deleted),
    ]
    assert [r.value for r in world.topics.records["N"]] == [b'{"C":1}', b'{"C":0}']
    assert world.runner.errors() == []


def test_a_table_s_row_whose_column_with_its_time_is_null_is_skipped():
    world = World(TABLE_TS.format("T"))
    world.feed("d", (7, {"T": None, "G": "g"}, 1_000))
    assert world.out("X") == []
    assert {operator for operator, _ in world.runner.errors()} == {"timestamp"}


def test_session_keys_carry_their_end_and_start():
    world = World(
        S,
        "CREATE TABLE W WITH (KEY_FORMAT='JSON') AS SELECT K, B, COUNT(*) AS C FROM S "
        "WINDOW SESSION (10 MILLISECONDS) GROUP BY K, B HAVING COUNT(*) > 1;",
        "CREATE STREAM R (K STRING KEY, B STRING KEY, C BIGINT) "
        "WITH (KAFKA_TOPIC='W', KEY_FORMAT='JSON', WINDOW_TYPE='SESSION');",
        "CREATE STREAM RR AS SELECT K, B, WINDOWSTART AS WS, WINDOWEND AS WE, C FROM R;",
    )
    world.feed("s", *(("k", {"B": "b"}, time) for time in (13, 20, 50, 25)))
    inner = b'{"K":"k","B":"b"}'
    written = [(r.key, r.value, r.timestamp) for r in world.topics.records["W"]]
    assert written == [
        (inner + struct.pack(">qq", 20, 13), b'{"C":2}', 20),
        (inner + struct.pack(">qq", 20, 13), None, 20),
        (inner + struct.pack(">qq", 25, 13), b'{"C":3}', 25),
    ]
    assert [(r.key, r.value) for r in world.topics.records["RR"]][-1] == (
        inner + struct.pack(">qq", 25, 13),
        b'{"WS":13,"WE":25,"C":3}',
    )
