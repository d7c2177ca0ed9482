from __future__ import annotations

import json
import struct

import pytest
from confluent_kafka import Producer

from ksql.control.planning.plan_queries import transient_plan
from ksql.core.errors import StatementError
from ksql.core.records import RawRecord
from ksql.exec.operators.memory import TooMuchState
from ksql.kafka.settings import KafkaSettings
from ksql.serving.feed import TopicFeed
from ksql.serving.push import PushQuery, check_limit, is_scalable
from ksql.sql.plan.walk import sources
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (K STRING PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE W (K STRING PRIMARY KEY, A INT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
"""


class ListFeed:
    """Records from a list, one by one."""

    def __init__(self, records):
        self._records = list(records)
        self.positions = {}

    @property
    def open(self):
        return bool(self._records)

    def poll(self):
        return [self._records.pop(0)]

    def pause(self, places):
        assert not places

    def end(self):
        self._records.clear()

    closed = False

    def close(self):
        self.end()
        self.closed = True


def windowed(key, start):
    return key.encode() + struct.pack(">q", start)


def rows(text, *records, keyed=False, **more):
    """What the query answers to ``(key, value)`` records, and how it ends."""
    world = World(SETUP)
    query = world.parse(text)
    context = world.engine.context(world.settings)
    plan = transient_plan("q", query, context)
    [source] = sources(plan.sink)
    raw = [
        RawRecord(
            source.topic,
            0,
            offset,
            offset,
            key.encode() if isinstance(key, str) else key,
            None if value is None else json.dumps(value).encode(),
            [],
        )
        for offset, (key, value) in enumerate(records)
    ]
    push = PushQuery(
        plan,
        world.engine.functions,
        lambda: ListFeed(raw),
        limit=query.limit,
        keyed=keyed,
        **more,
    )
    rows_ = [
        (*row.values, "gone") if row.tombstone else row.values for b in push.batches() for row in b
    ]
    return rows_, push.final_message


def test_rows_that_are_left_do_not_wait_for_the_reader():
    """The event loop may leave them; the query is closed in a thread."""
    world = World(SETUP)
    query = world.parse("SELECT A FROM S EMIT CHANGES;")
    plan = transient_plan("q", query, world.engine.context(world.settings))
    feed = ListFeed([RawRecord("s", 0, n, n, b"k", b'{"A": 1}', []) for n in range(3)])
    push = PushQuery(plan, world.engine.functions, lambda: feed)
    batches = push.batches()
    next(batches)
    del batches
    assert (feed.open, feed.closed) == (False, False)
    push.close()
    assert feed.closed


def test_its_state_is_bounded():
    records = [(f"k{number}", {"A": number}) for number in range(500)]
    text = "SELECT A, COUNT(*) FROM S GROUP BY A EMIT CHANGES LIMIT 500;"
    assert len(rows(text, *records)[0]) == 500
    with pytest.raises(TooMuchState):
        rows(text, *records, state_bytes=20_000)


@pytest.mark.parametrize(("items", "asks_ends"), [("A", 0), ("COUNT(*)", 1)])
def test_only_one_with_state_asks_where_its_topics_end(items, asks_ends):
    asks = []

    def present():
        asks.append(1)
        return {("s", 0): 1}

    text = f"SELECT {items} FROM S EMIT CHANGES LIMIT 1;"
    assert len(rows(text, ("a", {"A": 1}), present=present)[0]) == 1
    assert len(asks) == asks_ends


def test_a_partition_whose_records_wait_is_read_on_when_they_are_taken():
    """Over the client's own stand-in for a broker."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = [f"{b.host}:{b.port}" for b in producer.list_topics(timeout=10).brokers.values()]

    def produce(partition, count):
        for _ in range(count):
            producer.produce("s", b'{"A": 1}', b"k", partition, timestamp=10 - partition)
        assert producer.flush(10) == 0

    produce(0, 1_000)
    world = World(SETUP)
    query = world.parse("SELECT COUNT(*) FROM S EMIT CHANGES;")
    push = PushQuery(
        transient_plan("q", query, world.engine.context(world.settings)),
        world.engine.functions,
        lambda: TopicFeed(KafkaSettings(address), {("s", 0): 0, ("s", 1): 0}),
        state_bytes=1_000_000,
        present=lambda: {("s", 0): 1_000, ("s", 1): 1},
    )
    batches = push.batches()
    while not push._merging.enough:
        assert next(batches) == []
    read = push._feed.positions["s", 0]
    produce(0, 1_000)
    assert [next(batches) for _ in range(4)] == [[]] * 4
    assert push._feed.positions == {("s", 0): read, ("s", 1): 0}
    produce(1, 1)
    counts = (row.values[0] for batch in batches for row in batch)
    assert next(count for count in counts if count >= 2_001) == 2_001
    push.close()


def test_a_record_without_value_is_no_row_of_a_stream():
    records = [("a", {"A": 1}), ("b", None), (None, {"A": 2}), ("c", {"A": 3})]
    assert rows("SELECT * FROM S EMIT CHANGES LIMIT 3;", *records) == (
        [("a", 1), (None, 2), ("c", 3)],
        "Limit Reached",
    )


def test_records_without_key_may_be_left_out():
    records = [(None, {"A": 2}), ("a", {"A": 1}), ("b", {})]
    text = "SELECT A FROM S EMIT CHANGES LIMIT 2;"
    assert rows(text, *records)[0] == [(2,), (1,)]
    assert rows(text, *records, keyed=True)[0] == [(1,), (None,)]


@pytest.mark.parametrize(
    ("text", "settings", "scalable"),
    [
        ("SELECT A, ROWTIME FROM C WHERE A > 1 EMIT CHANGES;", {}, True),
        ("SELECT * FROM C EMIT CHANGES;", {"auto.offset.reset": "earliest"}, False),
        ("SELECT * FROM C EMIT CHANGES;", {"ksql.query.push.v2.enabled": "false"}, False),
        ("SELECT * FROM C;", {}, False),
        ("SELECT * FROM S EMIT CHANGES;", {}, False),
        ("SELECT * FROM D EMIT CHANGES;", {}, False),
        ("SELECT A, ROWPARTITION FROM C EMIT CHANGES;", {}, False),
        ("SELECT A FROM C WHERE ABS(ROWOFFSET) > 1 EMIT CHANGES;", {}, False),
        ("SELECT A, COUNT(*) FROM C GROUP BY A EMIT CHANGES;", {}, False),
        ("SELECT * FROM C PARTITION BY A EMIT CHANGES;", {}, False),
        ("SELECT * FROM C JOIN T ON C.K = T.K EMIT CHANGES;", {}, False),
    ],
)
def test_which_queries_are_scalable(text, settings, scalable):
    world = World(
        SETUP,
        "CREATE STREAM C AS SELECT * FROM S; CREATE STREAM D AS SELECT * FROM S;"
        "INSERT INTO D SELECT * FROM S;",
    )
    base = {"ksql.query.push.v2.enabled": "true", "auto.offset.reset": "latest"}
    chosen = world.settings.with_overrides(base | settings)
    assert is_scalable(world.parse(text), world.catalog, chosen) is scalable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) FROM S EMIT CHANGES LIMIT 3;", [(1,), (2,), (3,)]),
        ("SELECT SUM(A), 1, COUNT(A) FROM S EMIT CHANGES LIMIT 3;",
         [(2, 1, 1), (2, 1, 1), (5, 1, 2)]),
        ("SELECT COUNT(*) FROM S HAVING COUNT(*) > 1 EMIT CHANGES LIMIT 2;", [(2,), (3,)]),
        ("SELECT COUNT(*) FROM T EMIT CHANGES LIMIT 3;", [(1,), (2,), (1,)]),
    ],
)  # fmt: skip
def test_without_group_by_all_records_are_one_group(text, expected):
    records = [("a", {"A": 2}), ("b", {}), ("a", None if " T " in text else {"A": 3})]
    assert rows(text, *records)[0] == expected


def test_a_limit_is_not_negative():
    query = World(SETUP).parse("SELECT * FROM S EMIT CHANGES LIMIT -1;")
    with pytest.raises(StatementError, match="negative integers in the LIMIT clause"):
        check_limit(query)


def test_a_table_says_which_rows_are_gone():
    records = [("a", {"A": 1}), ("a", None), ("b", {"A": None})]
    assert rows("SELECT A, K FROM T EMIT CHANGES LIMIT 3;", *records) == (
        [(1, "a"), (None, "a", "gone"), (None, "b")],
        "Limit Reached",
    )


@pytest.mark.parametrize(
    ("source", "tombstones", "marks"),
    [("T", True, True), ("T", False, False), ("S", True, False)],
)
def test_only_deletions_of_a_table_that_are_shown_are_marked(source, tombstones, marks):
    world = World(SETUP)
    query = world.parse(f"SELECT K, A FROM {source} EMIT CHANGES;")
    plan = transient_plan("q", query, world.engine.context(world.settings))
    functions, feed = world.engine.functions, ListFeed([])
    push = PushQuery(plan, functions, lambda: feed, tombstones=tombstones, marked=True)
    assert push.marks_deletes is marks


def test_deletions_that_are_not_shown_do_not_count():
    records = [("a", {"A": 1}), ("a", None), ("b", None), ("b", {"A": 2}), ("c", {"A": 3})]
    text = "SELECT A, K FROM T EMIT CHANGES LIMIT 2;"
    expected = [(1, "a"), (2, "b")], "Limit Reached"
    assert rows(text, *records, tombstones=False) == expected


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("*", [("a", 1000, 2000, 1), ("a", 1000, 2000, None, "gone")]),
        ("A, WINDOWEND", [(1, 2000), (None, 2000, "gone")]),
        ("A, WINDOWSTART AS S", [(1, 1000), (None, 1000, "gone")]),
        ("A", [(1,), (None, "gone")]),
    ],
)
def test_a_window_that_is_gone_is_reported_by_its_bounds(items, expected):
    key = windowed("a", 1000)
    rows_, _ = rows(f"SELECT {items} FROM W EMIT CHANGES LIMIT 2;", (key, {"A": 1}), (key, None))
    assert rows_ == expected
