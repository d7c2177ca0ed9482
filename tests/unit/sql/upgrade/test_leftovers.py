"""A filter of a table that changes: what no longer passes goes as soon as it changes or is deleted.

Rows that an earlier plan let through are in the result; the plan that runs must take them back.
"""

from __future__ import annotations

import json

import pytest

from ksql.sql.plan import codec
from ksql.sql.plan.nodes import Filter
from ksql.sql.plan.walk import nodes
from tests.unit.world import World

TABLE = "CREATE TABLE T (ID STRING PRIMARY KEY, X INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
STREAM = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


def table(where):
    return f"TABLE U AS SELECT ID, X FROM T {where};"


def counts(having, what="COUNT(*) N", window=""):
    return f"TABLE U AS SELECT K, {what} FROM S {window} GROUP BY K {having};"


def rows(world, topic="U"):
    """The table that the topic holds."""
    return {key: value for key, value in world.last(topic).items() if value is not None}


def marked(world):
    return [each.leftovers for each in nodes(world.plan("U").sink) if isinstance(each, Filter)]


@pytest.mark.parametrize("before", ["", "WHERE X > 1"])
def test_a_row_that_no_longer_passes_goes_when_it_changes(before):
    world = World(TABLE, "CREATE " + table(before))
    world.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 3}, 2), ("c", {"X": 9}, 3))
    world.run("CREATE OR REPLACE " + table("WHERE X > 5"))
    assert rows(world) == {"a": {"X": 3}, "b": {"X": 3}, "c": {"X": 9}}
    world.feed("t", ("a", {"X": 4}, 4), ("b", None, 5), ("c", {"X": 10}, 6))
    assert rows(world) == {"c": {"X": 10}}


def test_a_filter_that_changed_twice():
    world = World(TABLE, "CREATE " + table("WHERE X > 1"))
    world.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 7}, 2))
    world.run("CREATE OR REPLACE " + table("WHERE X > 5"))
    world.run("CREATE OR REPLACE " + table("WHERE X > 8"))
    world.run("CREATE OR REPLACE " + table("WHERE X > 8"))
    world.feed("t", ("a", {"X": 2}, 3), ("b", None, 4))
    assert rows(world) == {}


def test_a_filter_that_went_and_came_back():
    world = World(TABLE, "CREATE " + table("WHERE X > 5"))
    world.run("CREATE OR REPLACE " + table(""))
    world.feed("t", ("a", {"X": 3}, 1))
    world.run("CREATE OR REPLACE " + table("WHERE X > 5"))
    world.feed("t", ("a", {"X": 4}, 2))
    assert rows(world) == {}


def test_a_new_column_decides():
    world = World(TABLE, "CREATE " + table("WHERE X > 1"))
    world.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 3}, 2))
    world.run("ALTER TABLE T ADD COLUMN Y INT;")
    world.run("CREATE OR REPLACE " + table("WHERE X > 1 AND Y > 1"))
    world.feed("t", ("a", {"X": 3, "Y": 0}, 3), ("b", {"X": 3, "Y": 2}, 4))
    assert rows(world) == {"b": {"X": 3}}


def test_having():
    world = World(STREAM, "CREATE " + counts("HAVING COUNT(*) < 5"))
    world.feed("s", *[("k", {"A": 1}, n) for n in range(2)])
    assert rows(world) == {"k": {"N": 2}}
    world.run("CREATE OR REPLACE " + counts("HAVING COUNT(*) < 2"))
    world.feed("s", ("k", {"A": 1}, 3))
    assert rows(world) == {}


def test_having_over_windows():
    window = "WINDOW TUMBLING (SIZE 10 SECONDS)"
    world = World(STREAM, "CREATE " + counts("", window=window))
    world.feed("s", ("k", {"A": 1}, 1), ("k", {"A": 1}, 10_001))
    world.run("CREATE OR REPLACE " + counts("HAVING COUNT(*) > 2", window=window))
    world.feed("s", ("k", {"A": 1}, 2))
    records = world.topics.records["U"]
    assert len({record.key for record in records}) == 2
    assert [record.value is None for record in records] == [False, False, True]
    assert records[2].key == records[0].key


def test_readers_of_the_result_follow():
    world = World(
        TABLE,
        "CREATE " + table("WHERE X > 1"),
        "CREATE TABLE C AS SELECT X, COUNT(*) N FROM U GROUP BY X;",
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM J AS SELECT S.K AS K, A, X FROM S LEFT JOIN U ON S.K = U.ID;",
    )
    world.feed("t", ("a", {"X": 3}, 1), ("b", {"X": 3}, 2))
    assert world.out("C")[-1][1] == {"N": 2}
    world.run("CREATE OR REPLACE " + table("WHERE X > 5"))
    world.feed("t", ("a", {"X": 4}, 3), ("b", None, 4))
    assert world.out("C")[-1][1] == {"N": 0}
    world.feed("s", ("a", {"A": 1}, 5))
    assert world.last("J") == {"a": {"A": 1, "X": None}}


def test_a_row_that_was_never_there_is_not_deleted():
    world = World(TABLE, "CREATE " + table("WHERE X > 1"))
    world.run("CREATE OR REPLACE " + table("WHERE X > 5"))
    world.feed("t", ("a", {"X": 0}, 1))
    assert world.out("U") == []


@pytest.mark.parametrize(
    "again", ["WHERE X > 1 AND X < 9", "WHERE X < 9 AND X > 1", "WHERE X < 9 AND X > 1 AND X < 9"]
)
def test_the_same_filter_deletes_no_more_than_before(again):
    world = World(TABLE, "CREATE " + table("WHERE X > 1 AND X < 9"))
    world.feed("t", ("a", {"X": 0}, 1))
    world.run("CREATE OR REPLACE " + table(again))
    assert marked(world) == [False]
    world.feed("t", ("a", {"X": 1}, 2), ("a", None, 3))
    assert world.out("U") == []


def test_literals_that_look_alike_are_another_filter():
    world = World(TABLE, "CREATE " + table("WHERE X > 1.0"))
    world.run("CREATE OR REPLACE " + table("WHERE X > 1E0"))
    assert marked(world) == [True]


def test_a_stream_remembers_nothing():
    world = World(STREAM, "CREATE STREAM U AS SELECT * FROM S WHERE A > 1;")
    world.run("CREATE OR REPLACE STREAM U AS SELECT * FROM S WHERE A > 5;")
    assert marked(world) == [False]


def test_plans_stored_before_are_read():
    world = World(TABLE, "CREATE " + table("WHERE X > 1"))
    text = world.query("U").plan
    body = json.loads(text)
    node = body["plan"]["sink"]["source"]["source"]
    assert node["$"] == "nodes.Filter"
    del node["leftovers"]
    assert codec.loads(json.dumps(body)) == codec.loads(text)


GUARANTEE = {"processing.guarantee": "exactly_once_v2"}
NULLS = {"ksql.cast.strings.preserve.nulls": "false"}
NESTED = {"ksql.nested.error.set.null": "false"}
LIST_LIMIT = {"ksql.functions.collect_list.limit": "1"}


@pytest.mark.parametrize(
    ("where", "setting", "other"),
    [
        ("WHERE X > 1", GUARANTEE, False),
        ("WHERE X > 1", NULLS, False),
        ("WHERE CAST(X AS STRING) > '1'", NULLS, True),
        ("WHERE CAST(X AS STRING) > '1'", GUARANTEE, False),
        ("WHERE X > 1", NESTED, False),
        ("WHERE ABS(X) > 1", NESTED, True),
        ("WHERE X > 1", LIST_LIMIT, False),
        ("WHERE ABS(X) > 1", {"ksql.functions.abs.base": "7"}, True),
    ],
)
def test_only_a_setting_that_bears_on_the_filter_makes_it_another_one(where, setting, other):
    world = World(TABLE, "CREATE " + table(where))
    world.feed("t", ("a", {"X": 0}, 1))
    [entity] = world.run("CREATE OR REPLACE " + table(where), **setting)
    assert entity.upgrade.classes == ("configuration",)
    assert marked(world) == [other]
    assert ("no longer passes" in entity.upgrade.guarantees[0].note) == other
    world.feed("t", ("a", {"X": 0}, 2))
    assert [key for key, _, _ in world.out("U")] == (["a"] if other else [])
