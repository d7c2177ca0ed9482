"""Joins of tables, whole: from statements and records to the records of the result."""

from __future__ import annotations

import json

import pytest

from ksql.exec.operators.keys import pack
from tests.unit.world import World

TABLES = """
CREATE TABLE A (K STRING PRIMARY KEY, V BIGINT, F STRING) WITH (KAFKA_TOPIC='a', PARTITIONS=1);
CREATE TABLE B (K STRING PRIMARY KEY, W BIGINT) WITH (KAFKA_TOPIC='b', PARTITIONS=1);
CREATE TABLE C (K STRING PRIMARY KEY, X BIGINT) WITH (KAFKA_TOPIC='c', PARTITIONS=1);
"""


def world_of(*statements):
    return World(TABLES, *statements)


def test_the_key_of_a_right_join_is_there_without_a_left_row():
    world = world_of(
        "CREATE TABLE O AS SELECT A.K AS AK, B.K AS BK, V, W FROM A RIGHT JOIN B ON A.K=B.K;"
    )
    world.feed("b", ("k", {"W": 1}, 1))
    world.feed("a", ("k", {"V": 2}, 2))
    world.feed("b", ("k", None, 3))
    assert world.out("O") == [
        ("k", {"BK": "k", "V": None, "W": 1}, 1),
        ("k", {"BK": "k", "V": 2, "W": 1}, 2),
        ("k", None, 3),
    ]


def test_a_full_join_has_a_key_of_its_own():
    world = world_of("CREATE TABLE O AS SELECT ROWKEY, V, W FROM A FULL JOIN B ON A.K = B.K;")
    world.feed("b", ("k", {"W": 1}, 5))
    world.feed("a", ("k", {"V": 2}, 2))
    world.feed("b", ("k", None, 6))
    world.feed("a", ("k", None, 7))
    assert world.out("O") == [
        ("k", {"V": None, "W": 1}, 5),
        ("k", {"V": 2, "W": 1}, 5),
        ("k", {"V": 2, "W": None}, 6),
        ("k", None, 7),
    ]


@pytest.mark.parametrize("on", ["A.K", "B.K"])
@pytest.mark.parametrize("kinds", ["LEFT INNER", "LEFT LEFT", "LEFT RIGHT", "RIGHT LEFT"])
def test_the_key_in_a_chain_is_that_of_the_rows(on, kinds):
    """Whichever column ON names, and whichever of the sides has no row."""
    first, second = kinds.split()
    world = world_of(
        f"CREATE TABLE O AS SELECT A.K AS K, V, W, X FROM A {first} JOIN B ON A.K = B.K "
        f"{second} JOIN C ON {on} = C.K;"
    )
    world.feed("c", ("k", {"X": 3}, 1))
    only = "b" if first == "RIGHT" else "a"
    world.feed(only, ("k", {"V": 1, "W": 1}, 2))
    value = {"V": 1, "W": None} if only == "a" else {"V": None, "W": 1}
    assert world.out("O")[-1] == ("k", {**value, "X": 3}, 2)
    world.feed(only, ("k", None, 3))
    world.feed("c", ("k", None, 4))
    assert world.last("O") == {"k": None}


def test_chains_of_tables_see_each_change_once():
    world = world_of(
        "CREATE TABLE O AS SELECT ROWKEY AS K, V, W, X FROM A JOIN B ON A.K = B.K "
        "FULL JOIN C ON A.K = C.K;"
    )
    world.feed("a", ("k", {"V": 1}, 1))
    world.feed("c", ("k", {"X": 3}, 2))
    world.feed("b", ("k", {"W": 2}, 3))
    world.feed("b", ("k", None, 4))
    assert world.out("O") == [
        ("k", {"V": None, "W": None, "X": 3}, 2),
        ("k", {"V": 1, "W": 2, "X": 3}, 3),
        ("k", {"V": None, "W": None, "X": 3}, 4),
    ]


def test_aggregates_undo_what_a_join_replaces():
    world = world_of("CREATE TABLE O AS SELECT W, SUM(V) AS S FROM A JOIN B ON A.K=B.K GROUP BY W;")
    world.feed("a", ("k", {"V": 5}, 1), ("l", {"V": 7}, 1))
    world.feed("b", ("k", {"W": 1}, 2), ("l", {"W": 1}, 2))
    world.feed("a", ("k", {"V": 6}, 3))
    world.feed("b", ("l", {"W": 2}, 4))
    world.feed("a", ("k", None, 5))
    sums = [(r.key, json.loads(r.value)["S"]) for r in world.topics.records["O"]]
    assert [s for _, s in sums] == [5, 12, 13, 6, 7, 0]


def test_aggregates_over_a_foreign_key_join():
    world = world_of(
        "CREATE TABLE O AS SELECT W, COUNT(*) AS N, SUM(V) AS S FROM A JOIN B ON A.F = B.K "
        "GROUP BY W;"
    )
    world.feed("b", ("x", {"W": 1}, 0), ("y", {"W": 2}, 0))
    world.feed("a", *((key, {"V": 1, "F": "x"}, 1) for key in "klm"))
    world.feed("a", ("k", {"V": 5, "F": "y"}, 2))
    world.feed("b", ("x", {"W": 2}, 3))
    last = {int.from_bytes(r.key, "big"): json.loads(r.value) for r in world.topics.records["O"]}
    assert last == {1: {"N": 0, "S": 0}, 2: {"N": 3, "S": 7}}


def test_a_filter_over_a_join_deletes_only_what_it_had_let_pass():
    world = world_of(
        "CREATE TABLE O AS SELECT A.K, V + W AS S FROM A JOIN B ON A.K = B.K WHERE V + W > 10;"
    )
    world.feed("b", ("k", {"W": 5}, 1))
    for time, value in enumerate((1, 6, 2, 3)):
        world.feed("a", ("k", {"V": value}, 2 + time))
    world.feed("b", ("k", None, 9))
    assert world.out("O") == [("k", {"S": 11}, 3), ("k", None, 4)]


def test_a_foreign_key_may_be_an_expression_and_rows_that_refer_hear_in_order():
    world = world_of(
        "CREATE TABLE O AS SELECT A.K, V, W FROM A LEFT JOIN B ON SUBSTRING(F, 1, 1) = B.K;"
    )
    world.feed("a", *((key, {"V": 1, "F": f"x{key}"}, 1) for key in ("n", "b", "c")))
    world.feed("b", ("x", {"W": 1}, 2))
    assert [key for key, _, time in world.out("O") if time == 2] == ["b", "c", "n"]


def test_the_order_of_rows_that_refer_is_that_of_the_keys_bytes():
    """KAFKA has negative numbers behind the others; in JSON 10 is before 9."""
    for key_format, expected in (("KAFKA", [9, 10, -1]), ("JSON", [-1, 10, 9])):
        world = World(
            "CREATE TABLE A (K BIGINT PRIMARY KEY, F STRING) WITH (KAFKA_TOPIC='a', PARTITIONS=1, "
            f"KEY_FORMAT='{key_format}', VALUE_FORMAT='JSON');"
            "CREATE TABLE B (K STRING PRIMARY KEY, W BIGINT) WITH (KAFKA_TOPIC='b', PARTITIONS=1);"
            "CREATE TABLE O WITH (KEY_FORMAT='JSON') AS "
            "SELECT A.K, W, F FROM A JOIN B ON A.F = B.K;",
        )
        for key in (10, -1, 9):
            binary = key_format == "KAFKA"
            data = key.to_bytes(8, "big", signed=True) if binary else str(key).encode()
            world.feed("a", (data, {"F": "x"}, 1))
        world.feed("b", ("x", {"W": 1}, 2))
        assert [int(key) for key, _, _ in world.out("O")] == expected


def test_a_foreign_key_join_may_begin_a_chain():
    world = world_of(
        "CREATE TABLE O AS SELECT A.K, W, X FROM A JOIN B ON A.F = B.K JOIN C ON A.K = C.K;"
    )
    world.feed("c", ("k", {"X": 3}, 1))
    world.feed("b", ("x", {"W": 1}, 2))
    world.feed("a", ("k", {"F": "x"}, 3), ("k", {"F": "y"}, 4), ("k", {"F": "z"}, 5))
    assert world.out("O") == [("k", {"W": 1, "X": 3}, 3), ("k", None, 4), ("k", None, 5)]


def test_joined_tables_can_be_sources_again():
    world = world_of(
        "CREATE TABLE J AS SELECT A.K AS K, V, F, W FROM A LEFT JOIN B ON A.K = B.K;",
        "CREATE TABLE O AS SELECT J.K AS K, V, W, X FROM J JOIN C ON J.F = C.K;",
    )
    world.feed("a", ("k", {"V": 1, "F": "c"}, 1))
    world.feed("c", ("c", {"X": 3}, 2))
    world.feed("b", ("k", {"W": 2}, 3))
    assert world.last("O") == {"k": {"V": 1, "W": 2, "X": 3}}


@pytest.mark.parametrize("on", ["A.K = B.K", "A.F = B.K"])
def test_a_side_that_gets_more_columns(on):
    """Rows that were stored before have NULL there; nothing else about them changes."""
    world = world_of(f"CREATE TABLE O AS SELECT A.K, V, W FROM A LEFT JOIN B ON {on};")
    world.feed("b", ("k", {"W": 1}, 1))
    world.feed("a", ("k", {"V": 2, "F": "k", "M": 9}, 2))
    world.run("ALTER TABLE A ADD COLUMN M BIGINT; ALTER TABLE B ADD COLUMN N BIGINT;")
    world.run(f"CREATE OR REPLACE TABLE O AS SELECT A.K, V, W, M, N FROM A LEFT JOIN B ON {on};")
    world.feed("b", ("k", {"W": 3, "N": 4}, 3))
    world.feed("a", ("k", {"V": 5, "F": "k", "M": 6}, 4))
    assert [value for _, value, _ in world.out("O")][1:] == [
        {"V": 2, "W": 3, "M": None, "N": 4},
        {"V": 5, "W": 3, "M": 6, "N": 4},
    ]


def test_join_change_that_would_orphan_state_is_refused():
    world = world_of("CREATE TABLE O AS SELECT A.K, V, W FROM A LEFT JOIN B ON A.F = B.K;")
    error = world.refuse(
        "CREATE OR REPLACE TABLE O AS SELECT A.K, V, W FROM A JOIN B ON A.F = B.K;"
    )
    assert "JOIN: LEFT became INNER" in error.detail


def test_state_of_a_foreign_key_join_is_small():
    """A change of one of many who refer writes its own entries, not those of the others."""
    world = world_of("CREATE TABLE O AS SELECT A.K, V, W FROM A JOIN B ON A.F = B.K;")
    world.feed("b", ("x", {"W": 1}, 1))
    world.feed("a", *((f"k{n}", {"V": n, "F": "x"}, 2) for n in range(300)))
    _, rows, _ = world.runner.running[world.query("O").version].stores
    chunks = [chunk for _, chunk in rows.scan(b"c")]
    assert sum(map(len, chunks)) == 300
    assert max(map(len, chunks)) <= 256
    world.feed("a", *((f"k{n}", None, 3) for n in range(300)))
    assert [list(rows.scan(space)) for space in (b"c", b"d", b"l")] == [[], [], []]
    assert rows.get(b"r", pack(("x",))) is not None
