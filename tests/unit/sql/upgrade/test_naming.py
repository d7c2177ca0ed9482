"""Names that the server makes up: two columns never become one, and one key stays one key."""

from __future__ import annotations

import pytest

from tests.unit.world import World

ORDERS = """
CREATE STREAM orders (k STRING KEY, item_id INT) WITH (KAFKA_TOPIC='o', PARTITIONS=1);
CREATE {kind} orders_item (i STRING {key}, v INT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);
"""
GROWN = "ALTER {kind} orders_item ADD COLUMN id INT;"


def joined(kind):
    """The sources of a join whose columns come to share a name, and the join."""
    world = World(ORDERS.format(kind=kind, key="KEY" if kind == "STREAM" else "PRIMARY KEY"))
    within = "WITHIN 1 MINUTE " if kind == "STREAM" else ""
    return world, f"{{}} JOIN {{}} {within}ON {{}}.k = {{}}.i"


def as_they_are(join):
    return join.format("orders", "orders_item", "orders", "orders_item")


def with_aliases(join):
    return join.format("orders o", "orders_item i", "o", "i")


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_aliases_that_the_server_asks_for_give_no_column_another_value(kind):
    world, join = joined(kind)
    head = "STREAM u AS SELECT"
    world.run(f"CREATE {head} k, item_id AS x FROM {as_they_are(join)};")
    world.feed("i", ("a", {"V": 1, "ID": 98}, 1))
    world.feed("o", ("a", {"ITEM_ID": 6}, 2))
    world.run(GROWN.format(kind=kind))
    error = world.refuse(f"CREATE OR REPLACE {head} k, item_id AS x FROM {as_they_are(join)};")
    assert "Give one of the sources another alias." in error.hint
    text = f"CREATE OR REPLACE {head} k, item_id AS x FROM {with_aliases(join)};"
    [entity] = world.run(text)
    assert entity.upgrade.classes == ("transparent",)
    world.feed("i", ("b", {"V": 1, "ID": 99}, 3))
    world.feed("o", ("b", {"ITEM_ID": 7}, 4))
    assert world.last("U") == {"a": {"X": 6}, "b": {"X": 7}}
    world.run(f"CREATE OR REPLACE {head} k, item_id AS x, id AS y FROM {with_aliases(join)};")
    world.feed("i", ("c", {"V": 1, "ID": 99}, 5))
    world.feed("o", ("c", {"ITEM_ID": 8}, 6))
    assert world.last("U")["c"] == {"X": 8, "Y": 99}


def test_an_aggregate_continues_with_the_column_that_it_folds():
    world, join = joined("TABLE")
    head = "TABLE u AS SELECT k, SUM(item_id) AS x"
    world.run(f"CREATE {head} FROM {as_they_are(join)} GROUP BY k;")
    world.feed("i", ("a", {"V": 1, "ID": 99}, 1))
    world.feed("o", ("a", {"ITEM_ID": 7}, 2))
    world.run(GROWN.format(kind="TABLE"))
    world.run(f"CREATE OR REPLACE {head}, COUNT(*) AS n FROM {with_aliases(join)} GROUP BY k;")
    world.feed("o", ("a", {"ITEM_ID": 7}, 3))
    assert world.last("U") == {"a": {"X": 14, "N": 1}}


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_the_key_of_a_full_join_keeps_its_state_under_another_name(kind):
    key, within = ("KEY", "WITHIN 1 MINUTE ") if kind == "STREAM" else ("PRIMARY KEY", "")
    world = World(
        f"CREATE {kind} a (id STRING {key}, x INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1);"
        f"CREATE {kind} b (id STRING {key}, y INT) WITH (KAFKA_TOPIC='b', PARTITIONS=1);"
    )
    join = f"FROM a FULL JOIN b {within}ON a.id = b.id;"
    world.run(f"CREATE {kind} u AS SELECT rowkey AS kk, x, y {join}")
    world.feed("a", ("k", {"X": 1}, 1))
    world.run(f"ALTER {kind} b ADD COLUMN rowkey INT;")
    text = f"CREATE OR REPLACE {kind} u AS SELECT rowkey_1 AS kk, x, y {join}"
    [entity] = world.run(text)
    assert entity.upgrade.classes == ("transparent",)
    world.feed("b", ("k", {"Y": 2, "ROWKEY": 3}, 2))
    assert world.last("U")["k"] == {"X": 1, "Y": 2}
