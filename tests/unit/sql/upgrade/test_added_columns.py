"""Columns that a source gets later: rows that a join keeps lack them; refused or reported."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ksql.sql.plan import codec
from ksql.sql.plan.walk import sources
from tests.unit.world import World

SOURCES = """
CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K STRING KEY, X INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, X INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE V (ID STRING PRIMARY KEY, Z INT, F STRING) WITH (KAFKA_TOPIC='v', PARTITIONS=1);
"""
JOINS = {
    "stream-table": ("STREAM", "S.K, A, {} FROM S JOIN T ON S.K = T.ID", "T"),
    "stream-table, left": ("STREAM", "S.K, A, {} FROM S LEFT JOIN T ON S.K = T.ID", "T"),
    "stream-stream": ("STREAM", "S.K, A, {} FROM S JOIN R WITHIN 1 HOUR ON S.K = R.K", "R"),
    "table-table": ("TABLE", "T.ID, Z, {} FROM T JOIN V ON T.ID = V.ID", "T"),
    "foreign key": ("TABLE", "V.ID, Z, {} FROM V JOIN T ON V.F = T.ID", "T"),
    "chain": ("STREAM", "S.K, A, {} FROM S JOIN V ON S.K = V.ID JOIN T ON S.K = T.ID", "T"),
}
TABLES = [name for name, (_, _, source) in JOINS.items() if source == "T"]


class Joined:
    """A join over a source that gets Y, which its records have had all along."""

    def __init__(self, name):
        self.kind, self.select, self.source = JOINS[name]
        self.world = World(SOURCES, f"CREATE {self.kind} U AS SELECT {self.select.format('X')};")
        self.world.feed(self.source.lower(), ("a", {"X": 1, "Y": 7}, 1))
        self.grow("Y")

    def grow(self, column):
        kind = "STREAM" if self.source == "R" else "TABLE"
        self.world.run(f"ALTER {kind} {self.source} ADD COLUMN {column} INT;")

    def text(self, columns, where=""):
        return f"CREATE OR REPLACE {self.kind} U AS SELECT {self.select.format(columns)} {where};"

    def replace(self, columns, where=""):
        [entity] = self.world.run(self.text(columns, where))
        return entity.upgrade

    def meet(self):
        """A record of the other sides: what it meets is what was kept."""
        self.world.feed("v", ("a", {"Z": 3, "F": "a"}, 2))
        self.world.feed("s", ("a", {"A": 2}, 3))
        return self.world.last("U")["a"]


@pytest.mark.parametrize("name", JOINS)
def test_the_answer_says_what_is_null(name):
    joined = Joined(name)
    report = joined.replace("X, Y")
    assert report.classes == ("schema evolution",)
    until = "as long as they wait" if joined.source == "R" else "until they change"
    note = f"{joined.source}.Y: NULL in rows that the join has kept since before the column came"
    assert report.guarantees[0].note == f"{note}, {until}"
    assert joined.meet()["Y"] is None
    joined.world.feed(joined.source.lower(), ("a", {"X": 1, "Y": 8}, 4))
    joined.world.feed("s", ("a", {"A": 2}, 5))
    assert joined.world.last("U")["a"]["Y"] == 8


@pytest.mark.parametrize("name", JOINS)
def test_unread_column_is_transparent(name):
    joined = Joined(name)
    assert joined.replace("X").classes == ("transparent",)
    assert joined.replace("X, X + 1 AS W").guarantees[0].note == (
        "records before the switch are not recomputed"
    )


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("first", [[], ["X"], ["X, Y"]])
def test_no_row_is_rejected_for_what_the_join_does_not_know(name, first):
    """However many replacements came before: what is kept is as it was."""
    joined = Joined(name)
    for columns in first:
        joined.replace(columns)
    where = "WHERE T.Y > 5"
    error = joined.world.refuse(joined.text(first[-1] if first else "X", where))
    [reason] = error.verdict.reasons
    assert reason.startswith("WHERE: (T_Y > 5) reads T.Y, which rows do not have that the join")
    assert joined.meet()["X"] == 1


def test_waiting_records_of_a_stream_are_reported():
    joined = Joined("stream-stream")
    report = joined.replace("X", "WHERE R.Y > 5")
    assert "R.Y: NULL in rows that the join has kept" in report.guarantees[0].note


@pytest.mark.parametrize("name", TABLES)
def test_a_query_that_began_with_the_column_may_ask_for_it(name):
    joined = Joined(name)
    kind, select = joined.kind, joined.select.format("X")
    joined.world.run(f"CREATE {kind} W AS SELECT {select};")
    joined.world.run(f"CREATE OR REPLACE {kind} W AS SELECT {select} WHERE T.Y > 5;")


def test_a_table_function_may_not_read_it():
    world = World(SOURCES, "CREATE STREAM U AS SELECT S.K, A FROM S JOIN T ON S.K = T.ID;")
    world.run("ALTER TABLE T ADD COLUMN L ARRAY<INT>;")
    error = world.refuse(
        "CREATE OR REPLACE STREAM U AS SELECT S.K, A, EXPLODE(T.L) E FROM S JOIN T ON S.K = T.ID;"
    )
    assert [reason.partition(":")[0] for reason in error.verdict.reasons] == ["SELECT"]


def test_an_aggregate_over_a_join_says_so():
    text = "TABLE U AS SELECT S.K, COUNT(*) N{} FROM S JOIN T ON S.K = T.ID GROUP BY S.K;"
    world = World(SOURCES, f"CREATE {text.format('')}", "ALTER TABLE T ADD COLUMN Y INT;")
    [entity] = world.run(f"CREATE OR REPLACE {text.format(', SUM(Y) Y')}")
    note = entity.upgrade.guarantees[0].note
    assert "start empty" in note
    assert "T.Y: NULL in rows that the join has kept" in note


@pytest.mark.parametrize(("kind", "source", "key"), [("STREAM", "S", "K"), ("TABLE", "T", "ID")])
def test_column_outside_join_state_is_there_at_once(kind, source, key):
    world = World(SOURCES, f"CREATE {kind} U AS SELECT * FROM {source};")
    world.run(f"ALTER {kind} {source} ADD COLUMN Y INT;")
    text = f"CREATE OR REPLACE {kind} U AS SELECT * FROM {source} WHERE Y > 1;"
    assert "kept" not in world.run(text)[0].upgrade.guarantees[0].note


def test_the_marks_are_stored_and_plans_without_them_as_ever():
    joined = Joined("stream-table")
    joined.replace("X")
    joined.grow("Q")
    joined.replace("X, Y")
    text = joined.world.query("U").plan
    plan = codec.loads(text)
    assert {s.name: s.later for s in sources(plan.sink)} == {"S": (), "T": ("Y", "Q")}
    assert (json.loads(text)["version"], codec.dumps(plan)) == (6, text)
    left = dataclasses.replace(plan.sink.source.source.left)
    assert '"later"' not in json.dumps(codec.STRUCTS.plain(left))
