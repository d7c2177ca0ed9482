"""Where the windows of a key lie: in its partition, but in topics that earlier versions wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.control.log.record import decode
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from ksql.sql.catalog.model import Topic
from ksql.sql.plan import codec
from ksql.sql.plan.walk import sources
from tests.stored.corpora import V1
from tests.stored.lines import read_lines
from tests.unit.control.engine.earlier import earlier
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE STREAM D (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='d', PARTITIONS=2,
  WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');
"""
TUMBLING = "WINDOW TUMBLING (SIZE 10 SECONDS)"
TABLE = f"CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S {TUMBLING} GROUP BY K;"
WIDER = TABLE.replace("CREATE", "CREATE OR REPLACE").replace("AS C", "AS C, SUM(N) AS U")
OVER_W = """CREATE STREAM OVER (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='W',
  WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');"""
INSERT = "INSERT INTO D SELECT * FROM OVER;"


def old_world():
    world = World(SETUP, TABLE)
    earlier(world, "W")
    return world


def stored(world, sink="W"):
    """The format of the query's plan, and whether it gathers."""
    [*_, query] = world.catalog.writers(sink)
    plan = codec.loads(query.plan)
    return int(query.plan[len('{"version":')]), plan.sink.gathered


@pytest.mark.parametrize(
    "window",
    [
        TUMBLING,
        "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)",
        "WINDOW SESSION (5 SECONDS)",
    ],
)
@pytest.mark.parametrize("end", ["", " EMIT FINAL"])
def test_a_new_query_gathers_them(window, end):
    world = World(
        SETUP, f"CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S {window} GROUP BY K{end};"
    )
    assert stored(world) == (5, True)
    assert world.catalog.scattered == frozenset()


def test_so_does_whatever_writes_windowed_keys():
    world = World(SETUP, TABLE, OVER_W, "CREATE STREAM X AS SELECT * FROM D;", INSERT)
    assert [stored(world, sink) for sink in ("X", "D")] == [(5, True)] * 2
    world.run(
        "CREATE STREAM J AS SELECT D.K, D.C FROM D JOIN OVER WITHIN 1 SECOND ON D.K = OVER.K;"
    )
    assert stored(world, "J") == (5, True)
    world.topic("t")
    world.run(
        "CREATE SOURCE TABLE V (K STRING PRIMARY KEY, C BIGINT) "
        "WITH (KAFKA_TOPIC='t', WINDOW_TYPE='SESSION');"
    )
    assert stored(world, "") == (5, True)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM X AS SELECT * FROM S;",
        "CREATE TABLE X AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;",
        "CREATE TABLE X AS SELECT C, COUNT(*) AS A FROM D GROUP BY C;",
    ],
)
def test_other_plans_say_nothing_of_it(text):
    world = World(SETUP, text)
    assert stored(world, "X") == (5, False)
    assert "gathered" not in world.query("X").plan
    assert "scattered" not in world.query("X").plan


def test_a_push_query_writes_nothing():
    world = World(SETUP)
    [entity] = world.run("EXPLAIN SELECT * FROM D EMIT CHANGES;")
    assert "partitions" not in entity.query_description.topology


# --- queries of earlier versions


def test_a_query_of_an_earlier_version_and_its_successors_continue_as_it_did():
    world = old_world()
    assert stored(world) == (3, False)
    assert world.catalog.scattered == {"W"}
    world.run(WIDER)
    assert "SUM" in world.query("W").plan
    assert stored(world) == (3, False)
    world.run(f"TERMINATE {world.query('W').id};")
    assert world.catalog.scattered == {"W"}
    world.run(WIDER)
    assert stored(world) == (5, False)


REBUILT = TABLE.replace("CREATE TABLE W", "CREATE OR REPLACE TABLE W WITH (REPLACE_MODE='rebuild')")


def test_a_query_of_an_earlier_version_is_rebuilt_and_its_rows_stay_where_they_are():
    world = old_world()
    world.run(REBUILT)
    world.drain()
    RebuildSupervisor(world.engine, Settings()).step()
    assert not world.catalog.rebuilds
    plan = world.plan("W")
    assert (plan.partitions, plan.placement, plan.sink.gathered) == (2, "keyed", False)


def test_rows_that_would_move_keep_a_query_of_an_earlier_version_from_a_rebuild():
    world = old_world()
    world.topics.known["W"] = Topic("W", 3)
    message = world.refuse(REBUILT).message
    assert "Topic 'W' has 3 partitions and had 2 when the query began" in message


def test_the_topic_remembers_when_the_table_is_recreated_over_it():
    world = old_world()
    world.run("DROP TABLE W;")
    world.run(TABLE)
    assert stored(world) == (5, False)
    world.run("DROP TABLE W DELETE TOPIC;")
    assert world.catalog.scattered == frozenset()
    world.run(TABLE)
    assert stored(world) == (5, True)


def test_another_query_that_writes_to_the_topic_does_as_the_first():
    world = World(SETUP, TABLE, OVER_W, INSERT)
    assert stored(world, "D") == (5, True)
    earlier(world, "D")
    assert world.catalog.scattered == {"d"}
    world.run(INSERT)
    assert len(world.catalog.writers("D")) == 2
    assert stored(world, "D") == (5, False)


def test_a_restart_finds_the_same():
    world = old_world()
    world.run("DROP TABLE W;")
    again = World()
    again.topics = world.topics
    for offset, command in enumerate(world.log.commands):
        again.engine.replay(offset, command)
    assert again.catalog.scattered == {"W"}


def test_frozen_queries_with_windows_keep_their_places():
    lines = read_lines(V1 / "windows" / "commands.jsonl")
    world = World()
    world.topic("s")
    for offset, line in enumerate(lines):
        command = decode(offset, line["key"].encode(), line["value"].encode())
        world.engine.replay(offset, command)
        world.log.commands.append(command)
    for source in world.catalog.sources.values():
        world.topic(source.topic, source.partitions)
    assert world.catalog.scattered == {"W1", "W2", "W3", "W4"}
    world.engine.start_queries()
    world.run(
        "CREATE OR REPLACE TABLE W4 AS SELECT K, COUNT(*) AS C, MIN(N) AS M, MAX(N) AS X FROM S "
        "WINDOW SESSION (3 SECONDS, RETENTION 1 HOUR) GROUP BY K EMIT FINAL;"
    )
    assert "MAX" in world.query("W4").plan
    assert not world.plan("W4").sink.gathered


# --- reading what they have written


def read_from(world, sink):
    return {source.name: source.scattered for source in sources(world.plan(sink).sink)}


def test_a_new_query_knows_which_of_its_sources_are_scattered():
    world = old_world()
    world.run(OVER_W)
    world.run(
        "CREATE STREAM J AS SELECT D.K, D.C FROM D JOIN OVER WITHIN 1 SECOND ON D.K = OVER.K;"
    )
    assert read_from(world, "J") == {"D": False, "OVER": True}
    world.run("CREATE STREAM X AS SELECT * FROM OVER;")
    assert stored(world, "X") == (5, True)
    assert read_from(world, "X") == {"OVER": True}


def test_its_successor_moves_what_it_moved_and_nothing_else():
    world = old_world()
    world.run(OVER_W)
    text = f"CREATE TABLE T AS SELECT K, COUNT(*) AS A FROM OVER {TUMBLING} GROUP BY K;"
    world.run(text)
    wider = text.replace("CREATE", "CREATE OR REPLACE").replace("AS A", "AS A, MAX(C) AS B")
    world.run(wider)
    assert read_from(world, "T") == {"OVER": True}
    earlier(world, "T")
    assert read_from(world, "T") == {"OVER": False}
    world.run(wider.replace("MAX(C) AS B", "MAX(C) AS B, MIN(C) AS E"))
    assert "MIN" in world.query("T").plan
    assert read_from(world, "T") == {"OVER": False}
    assert not world.plan("T").sink.gathered


def test_explain_reports_which_rows_move_and_where_windows_lie():
    world = old_world()
    world.run(OVER_W)
    windows_line = (
        "  the windows of a key lie in several partitions, as an earlier version placed them"
    )
    text = f"CREATE TABLE T AS SELECT K, COUNT(*) AS A FROM OVER {TUMBLING} GROUP BY K;"
    world.run(text)

    def shown(sink):
        [entity] = world.run(f"EXPLAIN {world.query(sink).id};")
        return entity.query_description.topology.split("\n")

    assert windows_line in shown("W")
    assert windows_line not in shown("T")
    [line] = [line for line in shown("T") if line.startswith("  from source 0 by K")]
    assert ", repartitioned" in line
    replaced = replace(world.plan("T"), query_id="Q")
    assert codec.loads(codec.dumps(replaced)) == replaced
