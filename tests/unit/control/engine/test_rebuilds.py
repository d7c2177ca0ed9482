"""A query that is rebuilt: begun, cut over by difference, given up, rolled back."""

from __future__ import annotations

import threading

import pytest

from ksql.control.engine.errors import BESIDE
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.core.query_version import QueryVersion
from ksql.exec.memory.driver import MemoryRunner
from tests.unit.world import World
from tests.waits import PATIENCE_S

RIDES = "CREATE STREAM R (B STRING KEY, D STRING, M INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);"
COUNT = "CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
FILTERED = (
    "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='rebuild') AS "
    "SELECT B, COUNT(*) AS N FROM R WHERE M > 10 GROUP BY B;"
)
BY_DOCK = (
    "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='rebuild') AS "
    "SELECT D AS B, COUNT(*) AS N FROM R GROUP BY D;"
)


def ride(bike, dock, metres, time):
    return bike, {"D": dock, "M": metres}, time


@pytest.fixture
def world():
    world = World(RIDES, COUNT)
    world.feed("r", ride("a", "x", 5, 1), ride("a", "x", 50, 2), ride("b", "y", 7, 3))
    return world


def supervisor(world):
    return RebuildSupervisor(world.engine, Settings())


def rebuilt(world, text=FILTERED):
    world.run(text)
    world.drain()
    supervisor(world).step()
    return world


def test_begin_leaves_running_query(world):
    before = world.query("T")
    [answer] = world.run(FILTERED)
    assert answer.command_status.message == f"Rebuild of {before.id} begun"
    assert world.query("T") == before
    candidate = world.catalog.rebuilds[before.id].candidate
    assert candidate.version == QueryVersion(before.id, 2)
    assert candidate.version in world.runner.running


def test_cut_over_writes_the_difference_only(world):
    before = len(world.out("T"))
    rebuilt(world)
    assert world.out("T")[before:] == [("a", {"N": 1}, 2), ("b", None, 0)]
    assert not world.catalog.rebuilds
    query = world.query("T")
    assert query.version == QueryVersion(query.id, 2)
    assert query.cut_over is not None


def test_new_plan_continues_with_its_state(world):
    rebuilt(world)
    world.feed("r", ride("a", "x", 20, 9), ride("a", "x", 1, 10))
    assert world.last("T")["a"] == {"N": 2}


def test_records_that_come_while_it_is_built(world):
    world.run(FILTERED)
    world.feed("r", ride("c", "z", 99, 5))
    assert world.last("T")["c"] == {"N": 1}
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 1}, "b": None, "c": {"N": 1}}


def test_another_grouping(world):
    rebuilt(world, BY_DOCK)
    assert world.last("T") == {"a": None, "b": None, "x": {"N": 2}, "y": {"N": 1}}


def test_stream_is_muted_before_the_cut_over():
    world = World(RIDES, "CREATE STREAM F AS SELECT B, M FROM R;")
    world.feed("r", ride("a", "x", 5, 1))
    world.run(
        "CREATE OR REPLACE STREAM F WITH (REPLACE_MODE='rebuild') AS SELECT B, M + 1 AS M FROM R;"
    )
    world.drain()
    supervisor(world).step()
    world.feed("r", ride("a", "x", 7, 2))
    assert world.out("F") == [("a", {"M": 5}, 1), ("a", {"M": 8}, 2)]


def test_auto_takes_in_place_where_that_is_accepted(world):
    world.run(
        "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='auto') AS "
        "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY B;"
    )
    assert not world.catalog.rebuilds
    assert world.query("T").version_number == 0


def test_auto_rebuilds_where_it_is_not(world):
    world.run(BY_DOCK.replace("'rebuild'", "'auto'"))
    assert list(world.catalog.rebuilds) == [world.query("T").id]


def test_refusal_names_the_statement_that_rebuilds(world):
    error = world.refuse(BY_DOCK.replace(" WITH (REPLACE_MODE='rebuild')", ""))
    statement = error.hint.split(f"{BESIDE}:\n")[1].split("\nOr create")[0]
    world.run(statement)
    assert world.catalog.rebuilds


def test_columns_of_readers_stay(world):
    error = world.refuse(
        "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='rebuild') AS "
        "SELECT B, MAX(D) AS N FROM R GROUP BY B;"
    )
    assert "The following columns are changed, missing or reordered" in error.message


def test_size_of_windows_stays_while_a_query_reads_their_topic():
    windows = (
        "CREATE TABLE W AS SELECT B, COUNT(*) AS N FROM R WINDOW TUMBLING (SIZE {}) GROUP BY B;"
    )
    world = World(RIDES, windows.format("1 SECOND"))
    world.run(
        "CREATE STREAM L (B STRING KEY, N BIGINT) WITH (KAFKA_TOPIC='W', WINDOW_TYPE='TUMBLING', "
        "WINDOW_SIZE='1 SECONDS');"
    )
    longer = windows.format("2 SECONDS").replace(
        "CREATE TABLE W", "CREATE OR REPLACE TABLE W WITH (REPLACE_MODE='rebuild')"
    )
    reader = world.run("CREATE STREAM COPY AS SELECT * FROM L;")[0].command_status.query_id
    assert "cannot be upgraded" in world.refuse(longer).message
    world.run(f"TERMINATE {reader};")
    world.run(longer)
    assert world.catalog.rebuilds


@pytest.mark.parametrize(
    "text",
    [FILTERED, "CREATE OR REPLACE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"],
)
def test_one_candidate_at_a_time(world, text):
    world.run(FILTERED)
    error = world.refuse(text)
    assert "is being rebuilt" in error.message
    assert "ABORT UPGRADE OF T" in error.hint


def test_restart_while_it_is_built(world):
    world.run(FILTERED)
    again = World(log=world.log, runner=lambda _topics: world.runner, topics=world.topics)
    for offset, command in enumerate(world.log.commands):
        again.engine.replay(offset, command)
    assert again.catalog == world.catalog
    again.engine.start_queries()
    again.drain()
    supervisor(again).step()
    assert again.last("T") == {"a": {"N": 1}, "b": None}


def test_terminate_ends_both(world):
    world.run(FILTERED)
    query_id = world.query("T").id
    world.run(f"TERMINATE {query_id};")
    assert not world.runner.running
    assert not world.catalog.rebuilds


def test_pause_rests_both(world):
    world.run(FILTERED)
    query_id = world.query("T").id
    world.run(f"PAUSE {query_id};")
    assert not world.runner.running
    supervisor(world).step()
    assert world.catalog.rebuilds
    world.run(f"RESUME {query_id};")
    world.drain()
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 1}, "b": None}


def test_statement_waits_for_the_cut_over(world):
    cut_over = supervisor(world)

    def await_rebuild(version, timeout_s):
        world.drain()
        return cut_over.wait(version, timeout_s)

    world.services.await_rebuild = await_rebuild
    [answer] = world.run(FILTERED, **{"ksql.upgrade.wait.ms": "5000"})
    assert not answer.warnings
    assert world.last("T") == {"a": {"N": 1}, "b": None}


def test_statement_that_waits_in_vain_says_so(world):
    world.services.await_rebuild = supervisor(world).wait
    world.engine.cut_over = lambda *_: None
    [answer] = world.run(FILTERED, **{"ksql.upgrade.wait.ms": "1"})
    assert "continues" in answer.warnings[0].message


def test_statement_waits_until_the_new_plan_runs(world):
    """The supervisor's own thread cuts over; the difference is written after the command."""
    cutting, running, answers = threading.Event(), threading.Event(), []
    cut_over = world.engine.cut_over

    def slowly(*given):
        cut_over(*given)
        cutting.set()
        assert running.wait(PATIENCE_S)

    world.engine.cut_over = slowly
    world.run(FILTERED)
    world.drain()
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    watching = supervisor(world)
    step = threading.Thread(target=watching.step)
    waiting = threading.Thread(target=lambda: answers.append(watching.wait(version, PATIENCE_S)))
    step.start()
    assert cutting.wait(PATIENCE_S)
    waiting.start()
    waiting.join(0.1)
    assert not world.catalog.rebuilds
    assert not answers
    running.set()
    waiting.join(PATIENCE_S)
    step.join(PATIENCE_S)
    assert answers == [""]


class Stubborn(MemoryRunner):
    """Does not bring two versions to one position, once."""

    failures = 1

    def meet(self, old, candidate):
        if self.failures:
            self.failures -= 1
            raise KsqlError("they do not meet")
        return super().meet(old, candidate)


def test_cut_over_that_fails_leaves_both_and_is_tried_again():
    world = World(RIDES, COUNT, runner=Stubborn)
    world.feed("r", ride("a", "x", 5, 1))
    world.run(FILTERED)
    world.drain()
    now = iter(range(100))
    watching = RebuildSupervisor(world.engine, Settings(), clock=lambda: float(next(now)))
    watching.step()
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    assert watching.troubles[version] == "they do not meet"
    assert len(world.runner.running) == 2
    watching.step()
    watching.step()
    assert not world.catalog.rebuilds
    assert not watching.troubles


def test_former_version_is_kept_for_a_time(world):
    rebuilt(world)
    query_id = world.query("T").id
    assert world.catalog.formers[query_id].query.version == QueryVersion(query_id)
    world.engine.now_ms = lambda: 86_400_001
    supervisor(world).step()
    assert not world.catalog.formers
    assert QueryVersion(query_id) not in world.catalog.versions


@pytest.mark.parametrize(
    ("properties", "fact"),
    [
        ("REPLACE_MODE='nonsense'", "Invalid value nonsense for configuration REPLACE_MODE"),
        ("START_MODE='yesterday'", "Invalid value yesterday for configuration START_MODE"),
        ("START_MODE='1969-12-31T00:00:00'", "The time lies before 1970"),
        ("START_MODE='2300-01-01T00:00:00'", "The time lies in the future"),
    ],
)
def test_wrong_modes(world, properties, fact):
    error = world.refuse(
        f"CREATE OR REPLACE TABLE T WITH ({properties}) AS "
        "SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
    )
    assert fact in error.message


def test_mode_needs_or_replace(world):
    error = world.refuse("CREATE TABLE U WITH (REPLACE_MODE='auto') AS SELECT * FROM T;")
    assert "REPLACE_MODE is for CREATE OR REPLACE" in error.message


def test_start_mode_is_no_part_of_a_replacement_in_place(world):
    error = world.refuse(
        "CREATE OR REPLACE TABLE T WITH (START_MODE='now') AS "
        "SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
    )
    assert "START_MODE has no effect on a replacement in place" in error.message


@pytest.mark.parametrize(
    ("start", "rows"),
    [("earliest", {"a", "b"}), ("now", set()), ("1970-01-01T00:00:00.003", {"b"})],
)
def test_first_query_begins_where_it_is_stated(world, start, rows):
    world.engine.now_ms = lambda: 10
    world.run(
        f"CREATE TABLE U WITH (START_MODE='{start}') AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
    )
    world.drain()
    assert set(world.last("U")) == rows


def test_rebuild_from_a_time(world):
    world.engine.now_ms = lambda: 10
    rebuilt(
        world,
        "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='rebuild', "
        "START_MODE='1970-01-01T00:00:00.002') AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;",
    )
    assert world.last("T") == {"a": {"N": 1}, "b": {"N": 1}}


def test_lost_beginning_needs_a_start(world):
    world.topics.lost = lambda _name: 7
    error = world.refuse(FILTERED)
    assert "have lost their beginning" in error.message
    assert "R: 7 records" in error.detail
    world.run(FILTERED.replace("'rebuild'", "'rebuild', START_MODE='earliest'"))
    assert world.catalog.rebuilds


def test_abort_leaves_no_trace(world):
    topics, rows = set(world.topics.known), world.out("T")
    world.run(FILTERED)
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    world.run("ABORT UPGRADE OF T;")
    assert set(world.topics.known) == topics
    assert not world.catalog.rebuilds
    assert version not in world.runner.running
    world.feed("r", ride("a", "x", 5, 4))
    assert world.out("T")[len(rows) :] == [("a", {"N": 3}, 4)]


def test_rollback_brings_the_former_rows_and_plan_back(world):
    rebuilt(world)
    world.feed("r", ride("a", "x", 5, 4), ride("b", "y", 90, 5))
    assert world.last("T") == {"a": {"N": 1}, "b": {"N": 1}}
    world.run("ROLLBACK UPGRADE OF T;")
    world.drain()
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 3}, "b": {"N": 2}}
    world.feed("r", ride("a", "x", 1, 6))
    assert world.last("T")["a"] == {"N": 4}
    assert world.query("T").version_number == 0


def test_rollback_of_a_rollback(world):
    rebuilt(world)
    for expected in (2, 1):
        world.run("ROLLBACK UPGRADE OF T;")
        world.drain()
        supervisor(world).step()
        assert world.last("T")["a"] == {"N": expected}


def test_abort_of_a_rollback_keeps_the_former_version(world):
    rebuilt(world)
    world.run("ROLLBACK UPGRADE OF T;")
    world.run("ABORT UPGRADE OF T;")
    assert world.catalog.formers
    assert world.last("T") == {"a": {"N": 1}, "b": None}
    world.run("ROLLBACK UPGRADE OF T;")
    world.drain()
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 2}, "b": {"N": 1}}


def test_drop_takes_all_versions_and_their_topics(world):
    rebuilt(world)
    world.run(BY_DOCK)
    world.run("DROP TABLE T;")
    assert not world.runner.running
    assert [name for name in world.topics.known if "query_" in name] == []


def test_explain_says_which_modes_are_possible(world):
    world.services.monitor.ends = lambda topics: {(topic, 0): (2, 9) for topic in topics}
    [answer] = world.run(f"EXPLAIN {BY_DOCK}")
    in_place, rebuild, backfill = answer.query_description.upgrade.modes
    assert not in_place.possible
    assert any("GROUP BY" in reason for reason in in_place.reasons)
    assert rebuild.possible
    assert (backfill.mode, backfill.possible) == ("backfill", False)
    assert any("no aggregate is added" in reason for reason in backfill.reasons)
    [extent] = answer.query_description.upgrade.reads
    assert (extent.source, extent.topic, extent.records, extent.lost) == ("R", "r", 7, 2)
    assert not world.catalog.rebuilds


def test_refusal_names_no_statement_that_would_be_refused_as_well():
    world = World(RIDES, "CREATE STREAM D WITH (VALUE_FORMAT='DELIMITED') AS SELECT B, M FROM R;")
    error = world.refuse(
        "CREATE OR REPLACE STREAM D WITH (VALUE_FORMAT='DELIMITED') AS SELECT B, M, D FROM R;"
    )
    assert BESIDE not in error.hint


def test_another_size_of_the_windows_is_a_rebuild():
    hourly = "TABLE W AS SELECT B, COUNT(*) AS N FROM R WINDOW TUMBLING (SIZE {} HOURS) GROUP BY B;"
    world = World(RIDES, f"CREATE {hourly.format(1)}")
    error = world.refuse(f"CREATE OR REPLACE {hourly.format(2)}")
    world.run(error.hint.split(f"{BESIDE}:\n")[1].split("\nOr create")[0])
    assert world.catalog.rebuilds


def test_auto_in_place_needs_no_start(world):
    world.run(
        "CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='auto', START_MODE='now') AS "
        "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY B;"
    )
    assert not world.catalog.rebuilds
