"""Aggregates that are added to a query and computed from the past; the others keep their state."""

from __future__ import annotations

import json
import random

import pytest

from ksql.control.engine.errors import BESIDE
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from tests.unit.world import World, load
from tests.upgrades.hosts import functions

RIDES = "CREATE STREAM R (B STRING KEY, D STRING, M INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);"
COUNT = "CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
BACKFILL = "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='backfill') AS "
SUMMED = f"{BACKFILL}SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY B;"
WINDOWED = (
    "CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R WINDOW {} GROUP BY B;",
    BACKFILL + "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R WINDOW {} GROUP BY B;",
)


def ride(bike, metres, time):
    return bike, {"D": "x", "M": metres}, time


def world_of(*statements):
    world = World(RIDES, *statements)
    world.feed("r", ride("a", 5, 1), ride("b", 7, 2), ride("a", 50, 3))
    return world


def lose(world, *offsets):
    """Empty records that a query has read: a later reader finds nothing of them."""
    records = world.topics.records["r"]
    for offset in offsets:
        records[offset] = records[offset]._replace(value=None)


def step(world):
    world.drain()
    RebuildSupervisor(world.engine, Settings()).step()


def backfilled(world, text=SUMMED):
    world.run(text)
    step(world)


def test_begun_like_a_rebuild():
    world = world_of(COUNT)
    [answer] = world.run(SUMMED)
    query = world.query("T")
    assert answer.command_status.message == f"Backfill of {query.id} begun"
    assert world.catalog.rebuilds[query.id].backfill
    assert world.last("T") == {"a": {"N": 2}, "b": {"N": 1}}


def test_added_sum_is_whole_and_count_goes_on():
    world = world_of(COUNT)
    backfilled(world)
    assert world.last("T") == {"a": {"N": 2, "S": 55}, "b": {"N": 1, "S": 7}}
    world.feed("r", ride("a", 1, 9))
    assert world.last("T")["a"] == {"N": 3, "S": 56}


def test_kept_aggregate_knows_records_that_are_lost():
    world = world_of(COUNT)
    lose(world, 0, 1)
    backfilled(world)
    assert world.last("T") == {"a": {"N": 2, "S": 50}, "b": {"N": 1, "S": 0}}
    world.feed("r", ride("b", 1, 9))
    assert world.last("T")["b"] == {"N": 2, "S": 1}


def test_only_rows_that_differ_are_written():
    world = world_of(
        "CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B HAVING COUNT(*) > 1;"
    )
    before = len(world.out("T"))
    backfilled(
        world,
        f"{BACKFILL}SELECT B, COUNT(*) AS N FROM R GROUP BY B HAVING COUNT(*) > 1 AND MAX(M) < 99;",
    )
    assert world.out("T")[before:] == []
    backfilled(
        world,
        f"{BACKFILL}SELECT B, COUNT(*) AS N FROM R GROUP BY B HAVING COUNT(*) > 0 AND MIN(M) > 6;",
    )
    assert world.out("T")[before:] == [("b", {"N": 1}, 2), ("a", None, 0)]


def test_from_now_on_added_aggregates_are_empty():
    world = world_of(COUNT)
    backfilled(world, SUMMED.replace("'backfill'", "'backfill', START_MODE='now'"))
    world.feed("r", ride("a", 1, 9), ride("c", 2, 10))
    assert world.last("T") == {
        "a": {"N": 3, "S": 1},
        "b": {"N": 1, "S": 0},
        "c": {"N": 1, "S": 2},
    }


def test_group_from_before_the_query_has_empty_kept_aggregates():
    world = World(RIDES)
    world.feed("r", ride("old", 5, 1))
    world.run(COUNT.replace("TABLE T", "TABLE T WITH (START_MODE='now')"))
    world.feed("r", ride("a", 7, 2))
    backfilled(world)
    assert world.last("T") == {"old": {"N": 0, "S": 5}, "a": {"N": 1, "S": 7}}


@pytest.mark.parametrize("window", ["TUMBLING (SIZE 9 SECONDS)", "SESSION (9 SECONDS)"])
def test_windows(window):
    create, replace = (text.format(window) for text in WINDOWED)
    world = world_of(create)
    lose(world, 0)
    backfilled(world, replace)
    assert values(world) == [{"N": 2, "S": 50}, {"N": 1, "S": 7}]
    world.feed("r", ride("a", 1, 4))
    assert {"N": 3, "S": 51} in values(world)


def test_window_that_no_state_knows_any_more_keeps_its_row():
    window = "TUMBLING (SIZE 1 SECOND, RETENTION 3 SECONDS, GRACE PERIOD 0 SECONDS)"
    create, replace = (text.format(window) for text in WINDOWED)
    world = world_of(create)
    lose(world, 0)
    world.feed("r", ride("c", 3, 466_000))
    before = len(world.out("T"))
    backfilled(world, replace)
    assert [value for _, value, _ in world.out("T")[before:]] == [{"N": 1, "S": 3}]
    assert values(world)[0] == {"N": 2}


@pytest.mark.parametrize(
    "window",
    [
        "TUMBLING (SIZE 1 SECOND, RETENTION 3 SECONDS, GRACE PERIOD 0 SECONDS)",
        "SESSION (1 SECOND, RETENTION 3 SECONDS, GRACE PERIOD 0 SECONDS)",
    ],
)
def test_window_that_only_a_candidate_knows_still_keeps_its_row(window):
    """The record that has passed it is lost: the candidate's time is earlier."""
    create, replace = (text.format(window) for text in WINDOWED)
    world = world_of(create)
    world.feed("r", ride("c", 3, 466_000))
    lose(world, 3)
    before = len(world.out("T"))
    backfilled(world, replace)
    assert [value for _, value, _ in world.out("T")[before:]] == [{"N": 1, "S": 0}]
    world.feed("r", ride("a", 1, 4))  # late: the query has come further
    assert values(world)[0] == {"N": 2}


def test_session_past_its_retention_is_not_joined():
    """A record comes near it that is not late: live they are two sessions."""
    window = "SESSION (10 SECONDS, RETENTION 10 SECONDS, GRACE PERIOD 0 SECONDS)"
    create, replace = (text.format(window) for text in WINDOWED)
    world = World(RIDES, create)
    world.feed("r", ride("a", 1, 100_000), ride("b", 2, 111_000), ride("a", 3, 105_000))
    backfilled(world, replace)
    rows = [row for row, _ in rows_by_key(world).values()]
    assert sorted((row["N"], row["S"]) for row in rows) == [(1, 1), (1, 2), (1, 3)]


def test_session_that_gets_other_bounds_has_one_row():
    create, replace = (text.format("SESSION (9 SECONDS)") for text in WINDOWED)
    world = World(RIDES)
    world.feed("r", ride("a", 5, 1))
    world.run(create.replace("TABLE T AS", "TABLE T WITH (START_MODE='now') AS"))
    world.feed("r", ride("a", 7, 2), ride("b", 8, 3))
    before = len(world.out("T"))
    backfilled(world, replace)
    written = [value for _, value, _ in world.out("T")[before:]]
    assert written == [{"N": 1, "S": 12}, {"N": 1, "S": 8}, None]
    assert sorted(row["S"] for row in values(world)) == [8, 12]


def test_columns_over_kept_and_added_aggregates():
    world = world_of("CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;")
    backfilled(
        world, f"{BACKFILL}SELECT B, COUNT(*) AS N, SUM(M) / COUNT(*) AS MEAN FROM R GROUP BY B;"
    )
    assert world.last("T") == {"a": {"N": 2, "MEAN": 27}, "b": {"N": 1, "MEAN": 7}}


def test_twice():
    world = world_of(COUNT)
    lose(world, 0)
    backfilled(world)
    lose(world, 1, 2)
    backfilled(
        world, f"{BACKFILL}SELECT B, COUNT(*) AS N, SUM(M) AS S, MAX(M) AS X FROM R GROUP BY B;"
    )
    world.feed("r", ride("a", 1, 9))
    assert world.last("T") == {"a": {"N": 3, "S": 51, "X": 1}, "b": {"N": 1, "S": 7, "X": None}}


def test_parted_and_met_again():
    world = world_of(COUNT)
    world.run(SUMMED)
    lose(world, 0)
    world.drain()
    old, candidate = world.query("T"), world.catalog.rebuilds[world.query("T").id].candidate
    world.runner.stop_at_same_offsets(old, candidate)
    world.runner.backfill(old, candidate)
    world.runner.resume_both(old, candidate)
    world.feed("r", ride("b", 1, 9))
    step(world)
    assert world.last("T") == {"a": {"N": 2, "S": 50}, "b": {"N": 2, "S": 8}}


def test_running_version_is_never_left_behind(monkeypatch):
    world = world_of(COUNT)
    stop_both, noted = world.runner.stop_at_same_offsets, []

    def noting(old, candidate, *, may_leave):
        noted.append(may_leave)
        return stop_both(old, candidate, may_leave=may_leave)

    monkeypatch.setattr(world.runner, "stop_at_same_offsets", noting)
    backfilled(world)
    assert noted == [False]
    world.run(SUMMED.replace("backfill", "rebuild"))
    step(world)
    assert noted == [False, True]


def test_abort_leaves_the_query():
    world = world_of(COUNT)
    world.run(SUMMED)
    world.run("ABORT UPGRADE OF T;")
    step(world)
    assert world.last("T") == {"a": {"N": 2}, "b": {"N": 1}}


def test_rollback_brings_the_former_version_back():
    world = world_of(COUNT)
    backfilled(world)
    world.feed("r", ride("a", 1, 9))
    world.run("ROLLBACK UPGRADE OF T;")
    step(world)
    assert world.last("T") == {"a": {"N": 3}, "b": {"N": 1}}


ADDED = "SUM(M) AS S, COLLECT_LIST(M) AS L, EARLIEST_BY_OFFSET(M) AS E, AVG(M) AS A"
ALL_WINDOWS = [
    "",
    "WINDOW TUMBLING (SIZE 20 SECONDS, GRACE PERIOD 10 SECONDS)",
    "WINDOW HOPPING (SIZE 20 SECONDS, ADVANCE BY 7 SECONDS, GRACE PERIOD 5 SECONDS)",
    "WINDOW SESSION (3 SECONDS, GRACE PERIOD 10 SECONDS)",
    "WINDOW SESSION (3 SECONDS, GRACE PERIOD 1 SECOND)",
    "WINDOW SESSION (3 SECONDS, RETENTION 20 SECONDS, GRACE PERIOD 0 SECONDS)",
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("window", ALL_WINDOWS)
def test_a_backfill_of_everything_gives_what_a_new_query_gives(window, seed):
    chance = random.Random(seed)
    rides = [
        (chance.choice("abc"), {"D": "x", "M": chance.randrange(100)}, 1000 * (n + late))
        for n in range(40)
        for late in [chance.choice([0, 0, 0, 2, -4, -15])]
        if n + late >= 0
    ]
    half = len(rides) // 2
    fresh = f"SELECT B, COUNT(*) AS N, MAX(M) AS X, {ADDED} FROM R {window} GROUP BY B;"
    running = World(RIDES, f"CREATE TABLE T AS {fresh.replace(f', {ADDED}', '')}")
    running.feed("r", *rides[:half])
    backfilled(running, BACKFILL + fresh)
    running.feed("r", *rides[half:])
    other = World(RIDES, f"CREATE TABLE T AS {fresh}")
    other.feed("r", *rides)
    assert rows_by_key(running) == rows_by_key(other)


def rows_by_key(world):
    """The last rows of the result by their keys as they are stored."""
    rows = world.topics.rows("T")
    return {key: (json.loads(row.value), row.timestamp) for key, row in rows.items()}


def test_explain_and_the_history_show_the_mode():
    world = world_of(COUNT)
    world.services.monitor.ends = lambda topics: {(topic, 0): (0, 3) for topic in topics}
    [answer] = world.run(f"EXPLAIN {SUMMED}")
    upgrade = answer.query_description.upgrade
    assert [(mode.mode, mode.possible) for mode in upgrade.modes] == [
        ("in_place", True),
        ("rebuild", True),
        ("backfill", True),
    ]
    assert "kept aggregates keep their state" in upgrade.guarantees[0].note
    world.run(SUMMED)
    rebuild = next(iter(world.catalog.rebuilds.values()))
    assert rebuild.mode == "backfill"


def test_explain_gives_each_mode_its_own_reasons():
    world = world_of(COUNT)
    world.services.monitor.ends = lambda topics: {(topic, 0): (0, 3) for topic in topics}
    [answer] = world.run(f"EXPLAIN {BACKFILL} SELECT B, COUNT(*) AS N FROM R GROUP BY B;")
    reasons = {mode.mode: mode.reasons for mode in answer.query_description.upgrade.modes}
    assert reasons["in_place"] == reasons["rebuild"] == ()
    assert "no aggregate is added" in reasons["backfill"][0]


def test_a_lost_beginning_needs_a_stated_start():
    world = world_of(COUNT)
    world.topics.lost = lambda _name: 2
    error = world.refuse(SUMMED)
    assert "have lost their beginning" in error.message
    world.run(SUMMED.replace("'backfill'", "'backfill', START_MODE='earliest'"))
    assert world.catalog.rebuilds


def values(world):
    """The last rows of all windows, without those that were deleted."""
    rows = [value for value in world.last("T").values() if value is not None]
    return sorted(rows, key=lambda row: -row["N"])


REFUSED = {
    "WHERE": "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R WHERE M > 6 GROUP BY B;",
    "GROUP BY": "SELECT D AS B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY D;",
    "WINDOW": "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R WINDOW SESSION (1 HOUR) GROUP BY B;",
    "FROM": "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R2 GROUP BY B;",
    "no aggregate is added": "SELECT B, COUNT(*) AS N FROM R GROUP BY B HAVING COUNT(*) > 1;",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_with_the_statement_that_rebuilds(reason):
    world = world_of(RIDES.replace("R (", "R2 (").replace("'r'", "'r2'"), COUNT)
    error = world.refuse(BACKFILL + REFUSED[reason])
    assert reason in error.text()
    if reason != "WINDOW":  # readers of the result could not follow
        statement = error.hint.split(f"{BESIDE}:\n")[1].split("\nOr create")[0]
        world.run(statement)
        assert not next(iter(world.catalog.rebuilds.values())).backfill


def test_refused_where_a_setting_lets_other_records_count():
    where = "FROM R WHERE CAST(M AS STRING) <> 'null'"
    world = world_of(COUNT.replace("FROM R", where))
    other = {"ksql.cast.strings.preserve.nulls": "false"}
    text = SUMMED.replace("FROM R", where)
    assert "WHERE: a setting, or the code of a function" in world.refuse(text, **other).text()
    world.run(text)
    assert world.catalog.rebuilds


def test_refused_where_the_code_of_a_function_lets_other_records_count():
    where = "FROM R WHERE BUMP(M) > 6"
    world = World(RIDES, COUNT.replace("FROM R", where), functions=functions(1))
    load(world.engine, world.runner, functions(2))
    text = SUMMED.replace("FROM R", where)
    assert "WHERE: a setting, or the code of a function" in world.refuse(text).text()
    load(world.engine, world.runner, functions(1))
    world.run(text)
    assert world.catalog.rebuilds


def test_refused_over_a_table():
    world = world_of(COUNT, "CREATE TABLE G AS SELECT N, COUNT(*) AS C FROM T GROUP BY N;")
    error = world.refuse(
        "CREATE OR REPLACE TABLE G WITH (REPLACE_MODE='backfill') AS "
        "SELECT N, COUNT(*) AS C, COUNT(B) AS D FROM T GROUP BY N;"
    )
    assert "aggregates over a table take rows back" in error.text()


def test_refused_for_final_results():
    create, replace = (
        text.format("TUMBLING (SIZE 10 MILLISECONDS)").replace(";", " EMIT FINAL;")
        for text in WINDOWED
    )
    error = world_of(create).refuse(replace)
    assert "final results" in error.text()
