"""CREATE SOURCE: read-only sources, and tables whose rows a query of their own keeps."""

from __future__ import annotations

import json

import pytest

from ksql.control.log import record
from ksql.core.config import Settings
from tests.unit.world import World

TABLE = "CREATE SOURCE TABLE T (K STRING PRIMARY KEY, V INT, TS BIGINT) WITH (KAFKA_TOPIC='t'%s);"
KEPT = "_confluent-ksql-default_query_CST_T_0-t-changelog"


def table(extra="", **settings):
    world = World(**settings)
    world.topic("t")
    [answer] = world.run(TABLE % extra)
    return world, answer


def test_a_query_keeps_its_rows():
    world, answer = table()
    assert answer.command_status.message == "Created query with ID CST_T_0"
    assert answer.command_status.query_id == "CST_T_0"
    world.feed(
        "t",
        ("a", {"V": 1}, 5),
        ("b", {"V": 2}, 6),
        (None, {"V": 3}, 7),
        ("b", None, 8),
        ("a", {"V": "no number"}, 9),
    )
    assert world.out(KEPT) == [
        ("a", {"V": 1, "TS": None}, 5),
        ("b", {"V": 2, "TS": None}, 6),
        ("b", None, 8),
    ]
    assert world.topics.known[KEPT].configs == {"cleanup.policy": "compact"}
    stored = world.catalog.source("T").queryable()
    assert (stored.topic, stored.created_by) == (KEPT, "CST_T_0")


def test_its_rows_have_the_times_of_the_timestamp_column():
    world, _ = table(", TIMESTAMP='ts'")
    world.feed("t", ("a", {"V": 1, "TS": 77}, 5))
    assert world.out(KEPT) == [("a", {"V": 1, "TS": 77}, 77)]


def test_it_begins_at_the_beginning():
    world = World(**{"auto.offset.reset": "latest"})
    world.topic("t")
    world.feed("t", ("a", {"V": 1}, 1))
    window = ", WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND'"
    for extra in ("", window):
        world.run(f"DROP TABLE IF EXISTS T; {TABLE % extra}")
        world.drain()
        [query] = world.catalog.queries.values()
        assert world.runner.running[query.version].positions == {"t": 1}


def test_windowed_rows_keep_their_windows():
    world, _ = table(", WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND'")
    one, two = (b"a" + n.to_bytes(8, "big") for n in (1000, 2000))
    for key, value in ((one, b'{"V":1}'), (two, b'{"V":2}'), (one, None), (b"a", b'{"V":3}')):
        world.write("t", key, value, 5)
    world.drain()
    kept = [(r.key, r.value and json.loads(r.value)["V"]) for r in world.topics.records[KEPT]]
    assert kept == [(one, 1), (two, 2), (one, None)]


def test_user_view_of_the_query_of_a_source_table():
    world, _ = table()
    [answer] = world.run("SHOW QUERIES;")
    [query] = answer.queries
    assert (query.id, query.sinks, query.state) == ("CST_T_0", (), "RUNNING")
    for verb in ("TERMINATE", "PAUSE", "RESUME"):
        error = world.refuse(f"{verb} CST_T_0;")
        assert error.message == (
            f"Cannot {verb.lower()} query 'CST_T_0' because it is linked to a source table."
        )
        world.run(f"{verb} ALL;")
    assert list(world.catalog.queries) == ["CST_T_0"]


def test_dropping_it_ends_the_query_and_takes_the_rows_away():
    world, _ = table()
    assert world.refuse("DROP TABLE T DELETE TOPIC;").message == (
        "Cannot delete topic for read-only source: T"
    )
    world.run("CREATE TABLE C AS SELECT * FROM T;")
    assert "read from this source: [C]" in world.refuse("DROP TABLE T;").message
    world.run("DROP TABLE C; DROP TABLE T;")
    assert not world.catalog.queries
    assert set(world.topics.known) == {"t", "C"}


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR REPLACE SOURCE TABLE T (K STRING PRIMARY KEY) WITH (KAFKA_TOPIC='t');",
        "CREATE OR REPLACE TABLE T (K STRING PRIMARY KEY) WITH (KAFKA_TOPIC='t');",
        "ALTER TABLE T ADD COLUMN N INT;",
        "CREATE SOURCE TABLE T (K STRING PRIMARY KEY) WITH (KAFKA_TOPIC='t');",
    ],
)
def test_it_is_read_only(text):
    world, _ = table()
    assert "T" in world.refuse(text).message


@pytest.mark.parametrize("kind", ["TABLE X (K STRING PRIMARY KEY)", "STREAM X (K STRING)"])
def test_both_forms_can_be_switched_off(kind):
    world = World()
    world.topic("x")
    world.settings = Settings({"ksql.source.table.materialization.enabled": "false"})
    error = world.refuse(f"CREATE SOURCE {kind} WITH (KAFKA_TOPIC='x');")
    assert "source table materialization is disabled" in error.message


def test_a_source_stream_has_no_query():
    world = World()
    world.topic("x")
    world.run("CREATE SOURCE STREAM X (A INT) WITH (KAFKA_TOPIC='x');")
    assert not world.catalog.queries
    assert world.catalog.source("X").queryable() is None


def test_it_survives_a_replay():
    world, _ = table()
    [command] = world.log.commands
    decoded = record.decode(0, *record.encode(command))
    assert decoded.changes == command.changes
