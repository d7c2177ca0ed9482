"""One of several queries that write a stream is replaced; the others stay what they are."""

from __future__ import annotations

import pytest

from ksql.control.engine.errors import BESIDE
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from ksql.core.query_version import QueryVersion
from tests.unit.world import World

SOURCES = (
    "CREATE STREAM A (K STRING KEY, V INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1);",
    "CREATE STREAM B (K STRING KEY, V INT) WITH (KAFKA_TOPIC='b', PARTITIONS=1);",
)
CREATED = (*SOURCES, "CREATE STREAM X AS SELECT K, V FROM A;")
INTO = "INSERT INTO X SELECT K, V * 10 AS V FROM B;"
ANOTHER = "INSERT INTO X SELECT K, V * 20 AS V FROM B;"
FROM_A = "INSERT INTO X SELECT K, V * 30 AS V FROM A;"
ID = "INSERTQUERY_3"
REPLACE = f"CREATE OR REPLACE QUERY {ID} AS {ANOTHER}"
REBUILD = f"CREATE OR REPLACE QUERY {ID} WITH (REPLACE_MODE='rebuild') AS {FROM_A}"


@pytest.fixture
def world():
    return World(*CREATED, INTO)


def cut_over(world):
    world.drain()
    RebuildSupervisor(world.engine, Settings()).step()
    world.drain()


def values(world):
    return [value["V"] for _, value, _ in world.out("X")]


def test_one_of_two_writers_in_place(world):
    other = world.catalog.query("CSAS_X_2")
    world.feed("b", ("k", {"V": 1}, 1))
    [answer] = world.run(REPLACE)
    world.feed("b", ("k", {"V": 1}, 2))
    world.feed("a", ("k", {"V": 7}, 3))
    assert answer.upgrade.classes == ("data selection",)
    assert values(world) == [10, 20, 7]
    assert world.catalog.query("CSAS_X_2") == other
    assert world.catalog.query(ID).statement == REPLACE
    assert world.catalog.query(ID).kind == "INSERT"


def test_writer_that_created_the_stream(world):
    source = world.catalog.sources["X"]
    world.run("CREATE OR REPLACE QUERY CSAS_X_2 AS INSERT INTO X SELECT K, V + 1 AS V FROM A;")
    world.feed("a", ("k", {"V": 7}, 3))
    world.feed("b", ("k", {"V": 7}, 4))
    assert values(world) == [8, 70]
    assert world.catalog.sources["X"] == source


def test_creator_that_reads_another_source_is_derived_from_it(world):
    world.run(
        "CREATE OR REPLACE QUERY CSAS_X_2 WITH (REPLACE_MODE='rebuild') AS "
        "INSERT INTO X SELECT K, V + 1 AS V FROM B;"
    )
    assert world.catalog.sources["X"].derived_from == ("A",)
    cut_over(world)
    assert world.catalog.sources["X"].derived_from == ("B",)


def test_rebuild_of_one_writer(world):
    world.feed("a", ("k", {"V": 1}, 1))
    world.feed("b", ("k", {"V": 1}, 2))
    [answer] = world.run(REBUILD)
    assert answer.command_status.message == f"Rebuild of {ID} begun"
    cut_over(world)
    world.feed("a", ("k", {"V": 2}, 3))
    world.feed("b", ("k", {"V": 2}, 4))
    assert values(world) == [1, 10, 2, 60]
    query = world.catalog.query(ID)
    assert query.version == QueryVersion(query.id, 4)
    assert world.catalog.query("CSAS_X_2").version_number == 0


def test_both_writers_are_rebuilt_at_once(world):
    world.run(REBUILD)
    world.run(
        "CREATE OR REPLACE QUERY CSAS_X_2 WITH (REPLACE_MODE='rebuild') AS "
        "INSERT INTO X SELECT K, V + 1 AS V FROM B;"
    )
    cut_over(world)
    world.feed("a", ("k", {"V": 2}, 3))
    world.feed("b", ("k", {"V": 2}, 4))
    assert values(world) == [60, 3]


def test_auto_takes_either_way(world):
    auto = "CREATE OR REPLACE QUERY INSERTQUERY_3 WITH (REPLACE_MODE='auto') AS {}"
    world.run(auto.format(ANOTHER))
    assert not world.catalog.rebuilds
    world.run(auto.format(FROM_A))
    assert list(world.catalog.rebuilds) == [ID]


def test_declared_stream_with_several_writers():
    world = World(
        *SOURCES,
        "CREATE STREAM X (K STRING KEY, V INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1);",
        "INSERT INTO X WITH (QUERY_ID='mine') SELECT K, V FROM A;",
        "INSERT INTO X SELECT K, V FROM B;",
    )
    world.run(
        "CREATE OR REPLACE QUERY mine AS INSERT INTO X WITH (QUERY_ID='mine') "
        "SELECT K, V + 1 AS V FROM A;"
    )
    world.feed("a", ("k", {"V": 1}, 1))
    world.feed("b", ("k", {"V": 1}, 2))
    assert values(world) == [2, 1]


def test_stream_may_get_columns_while_a_writer_is_rebuilt():
    world = World(
        *SOURCES,
        "CREATE STREAM X (K STRING KEY, V INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1);",
        "INSERT INTO X SELECT K, V FROM B;",
    )
    world.run(REBUILD)
    world.run("ALTER STREAM X ADD COLUMN W INT;")
    cut_over(world)
    assert [c.name for c in world.catalog.sources["X"].schema.value] == ["V", "W"]
    world.feed("a", ("k", {"V": 1}, 1))
    assert values(world) == [30]
    world.run(f"ROLLBACK UPGRADE OF QUERY {ID};")
    cut_over(world)
    assert [c.name for c in world.catalog.sources["X"].schema.value] == ["V", "W"]


def test_column_that_the_stream_got():
    world = World(
        *SOURCES,
        "CREATE STREAM X (K STRING KEY, V INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1);",
        "INSERT INTO X SELECT K, V FROM B;",
        "ALTER STREAM X ADD COLUMN W INT;",
    )
    [answer] = world.run(
        f"CREATE OR REPLACE QUERY {ID} AS INSERT INTO X SELECT K, V, V + 1 AS W FROM B;"
    )
    assert answer.upgrade.classes == ("schema evolution",)
    world.feed("b", ("k", {"V": 1}, 1))
    assert world.out("X") == [("k", {"V": 1, "W": 2}, 1)]


def test_refusal_names_the_statement_that_rebuilds(world):
    error = world.refuse(f"CREATE OR REPLACE QUERY {ID} AS {FROM_A}")
    assert error.message == f"Cannot upgrade query: {ID}."
    statement = error.hint.split(f"{BESIDE}:\n")[1].split("\nOr create")[0]
    world.run(statement)
    assert list(world.catalog.rebuilds) == [ID]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (REPLACE.replace("_3", "_4"), "There is no query INSERTQUERY_4", "SHOW QUERIES"),
        (REPLACE.replace("INTO X", "INTO B"), f"{ID} writes X, not B", "INSERT INTO X"),
        (REPLACE.replace("K, V * 20 AS V", "K, V, V AS W"), "Incompatible schema", ""),
        (REPLACE.replace("V * 20", "'x'"), "Incompatible schema", ""),
        (
            f"CREATE OR REPLACE QUERY {ID} WITH (KAFKA_TOPIC='y') AS {ANOTHER}",
            "KAFKA_TOPIC belongs to X",
            "REPLACE_MODE",
        ),
        (
            f"CREATE OR REPLACE QUERY {ID} WITH (START_MODE='now') AS {ANOTHER}",
            "START_MODE has no effect",
            "REPLACE_MODE='rebuild'",
        ),
        (
            REPLACE.replace("INTO X", "INTO X WITH (QUERY_ID='other')"),
            f"{ID} keeps its id",
            "Leave QUERY_ID out",
        ),
        (REPLACE.replace("FROM B", "FROM X"), "would read its own result", "another stream"),
        (REPLACE.replace("FROM B", "FROM B LIMIT 3"), "LIMIT", ""),
    ],
)
def test_refused(world, text, message, hint):
    before = world.catalog
    error = world.refuse(text)
    assert message in error.message
    assert hint in error.hint
    assert world.catalog == before


def test_unknown_id_names_the_writers(world):
    error = world.refuse(REPLACE.replace(ID, "MINE"))
    assert "X is written by: CSAS_X_2, INSERTQUERY_3" in error.detail


def test_query_of_a_table(world):
    world.run("CREATE TABLE T AS SELECT K, COUNT(*) AS N FROM A GROUP BY K;")
    [query] = world.catalog.writers("T")
    error = world.refuse(f"CREATE OR REPLACE QUERY {query.id} AS {ANOTHER}")
    assert "writes a table" in error.message
    assert "CREATE OR REPLACE TABLE T" in error.hint


def test_lost_beginning_needs_a_start(world):
    world.topics.lost = lambda _name: 7
    assert "have lost their beginning" in world.refuse(REBUILD).message
    world.run(REBUILD.replace("'rebuild'", "'rebuild', START_MODE='now'"))
    assert world.catalog.rebuilds


def test_query_that_is_rebuilt(world):
    world.run(REBUILD)
    error = world.refuse(REPLACE)
    assert "is being rebuilt" in error.message
    assert f"ABORT UPGRADE OF QUERY {ID};" in error.hint


def test_switched_off(world):
    world.run("CREATE STREAM Y AS SELECT * FROM A;")
    world.settings = type(world.settings)({"ksql.create.or.replace.enabled": "false"})
    assert "is disabled" in world.refuse(REPLACE).message


def test_abort(world):
    topics = set(world.topics.known)
    world.run(REBUILD)
    [answer] = world.run(f"ABORT UPGRADE OF QUERY {ID};")
    assert answer.command_status.message == f"Rebuild of {ID} aborted"
    assert not world.catalog.rebuilds
    assert set(world.topics.known) == topics
    world.feed("b", ("k", {"V": 2}, 4))
    assert values(world) == [20]


def test_rollback(world):
    world.run(REBUILD)
    cut_over(world)
    world.run(f"ROLLBACK UPGRADE OF QUERY {ID};")
    world.feed("b", ("k", {"V": 1}, 1))
    cut_over(world)
    world.feed("b", ("k", {"V": 2}, 2))
    world.feed("a", ("k", {"V": 3}, 3))
    assert values(world) == [20, 3]


def test_upgrade_of_an_unknown_query(world):
    error = world.refuse("ABORT UPGRADE OF QUERY INSERTQUERY_33;")
    assert error.message == "Unknown queryId: INSERTQUERY_33"


def test_upgrade_of_a_declared_stream_names_its_writers():
    world = World(
        *SOURCES,
        "CREATE STREAM X (K STRING KEY, V INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1);",
        "INSERT INTO X SELECT K, V FROM B;",
    )
    error = world.refuse("ABORT UPGRADE OF X;")
    assert error.hint == f"Write OF QUERY and the id of the query. It is written by {ID}."


def test_refused_replacement_of_the_stream_names_the_statement(world):
    error = world.refuse("CREATE OR REPLACE STREAM X AS SELECT K, V + 1 AS V FROM A;")
    assert "CREATE OR REPLACE QUERY CSAS_X_2 AS INSERT INTO X SELECT .." in error.hint


def test_explain_says_which_modes_are_possible(world):
    [answer] = world.run(f"EXPLAIN CREATE OR REPLACE QUERY {ID} AS {FROM_A}")
    upgrade = answer.query_description.upgrade
    assert upgrade.query_id == ID
    assert [mode.possible for mode in upgrade.modes] == [False, True, False]
    assert not world.catalog.rebuilds


def test_show_upgrades_of_a_stream_lists_those_of_all_writers(world):
    world.run(REBUILD)
    world.run(
        "CREATE OR REPLACE QUERY CSAS_X_2 WITH (REPLACE_MODE='rebuild') AS "
        "INSERT INTO X SELECT K, V + 1 AS V FROM B;"
    )
    [of_stream] = world.run("SHOW UPGRADES FOR X;")
    [of_query] = world.run(f"SHOW UPGRADES FOR {ID};")
    assert {row.query_id for row in of_stream.upgrades} == {ID, "CSAS_X_2"}
    assert [row.query_id for row in of_query.upgrades] == [ID]


def test_paused_query_gets_its_plan(world):
    world.run(f"PAUSE {ID};")
    world.run(REPLACE)
    assert world.catalog.query(ID).paused
    world.run(f"RESUME {ID};")
    world.feed("b", ("k", {"V": 1}, 1))
    assert values(world) == [20]


def test_restart_while_one_writer_is_rebuilt(world):
    world.run(REBUILD)
    again = World(log=world.log, runner=lambda _topics: world.runner, topics=world.topics)
    for offset, command in enumerate(world.log.commands):
        again.engine.replay(offset, command)
    assert again.catalog == world.catalog
    again.engine.start_queries()
    cut_over(again)
    again.feed("a", ("k", {"V": 2}, 3))
    assert values(again) == [2, 60]
