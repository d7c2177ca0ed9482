"""A query that is rebuilt: begun, cut over by difference, given up, rolled back."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ksql.control.engine.command_execution import UpgradeHistory
from ksql.control.engine.errors import BESIDE
from ksql.control.engine.ports import MemoryLog
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.control.room_watch import RoomWatch
from ksql.control.statements import execute
from ksql.core.config import Settings
from ksql.core.error_table import FORMER_NOT_KEPT, ROWS_LOST
from ksql.core.errors import KsqlError
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.exec.memory.driver import MemoryRunner
from ksql.formats.schema_registry import MemoryRegistry, Schema, SchemaRejected
from ksql.kafka.errors import UnknownTopic
from ksql.sql.catalog.model import Topic
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
LEAST = 268_435_456
"""What a rebuild leaves free of its disk by default, in bytes."""


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


@pytest.mark.parametrize("text", [FILTERED, "ROLLBACK UPGRADE OF T;"])
def test_upgrade_of_a_paused_query_rests_as_well(world, text):
    rebuilt(world)
    query = world.query("T")
    world.run(f"PAUSE {query.id};")
    world.run(text)
    assert not world.runner.running
    world.run(f"RESUME {query.id};")
    candidate = world.catalog.rebuilds[query.id].candidate
    assert set(world.runner.running) == {query.version, candidate.version}


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


def test_statements_that_wait_leave_threads_to_others(world):
    world.run(FILTERED)
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    watching, waiting, go_on = supervisor(world), threading.Semaphore(0), threading.Event()

    def rest(_seconds):
        waiting.release()
        assert go_on.wait(PATIENCE_S)

    watching.step, watching._sleep = lambda: None, rest
    threads = [threading.Thread(target=watching.wait, args=(version, 0.05)) for _ in range(8)]
    for thread in threads:
        thread.start()
        assert waiting.acquire(timeout=PATIENCE_S)
    assert watching.wait(version, PATIENCE_S) == "8 other statements wait for rebuilds."
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert watching.wait(version, 0.0) == "it reads what is there"


@pytest.mark.parametrize("text", [FILTERED, "ROLLBACK UPGRADE OF T;"])
@pytest.mark.parametrize("end", ["ABORT UPGRADE OF T;", "TERMINATE CTAS_T_1;"])
def test_statement_that_waits_for_what_somebody_else_ends_says_so(world, text, end):
    rebuilt(world, BY_DOCK)
    watching = supervisor(world)

    def await_rebuild(version, timeout_s):
        world.run(end)
        return watching.wait(version, timeout_s)

    world.services.await_rebuild = await_rebuild
    [answer] = world.run(text, **{"ksql.upgrade.wait.ms": "5000"})
    [warning] = answer.warnings
    assert "The rebuild of CTAS_T_1 was ended before its cut-over" in warning.message


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


def test_statement_waits_for_the_steps_of_the_supervisor(world):
    """Kafka is asked once a second, not by each statement that waits."""
    world.run(FILTERED)
    world.drain()
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    watching, steppers = supervisor(world), set()
    step = watching.step

    def noted():
        steppers.add(threading.current_thread())
        step()

    watching._worker._step = watching.step = noted
    watching.start()
    try:
        assert watching.wait(version, PATIENCE_S) == ""
    finally:
        watching.close()
    assert threading.current_thread() not in steppers
    assert world.last("T") == {"a": {"N": 1}, "b": None}


def test_statement_that_waits_says_what_does_not_catch_up(world):
    world.run(FILTERED)
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    now = iter(range(0, 1000, 40))
    watching = RebuildSupervisor(world.engine, Settings(), clock=lambda: float(next(now)))
    progressing(world, records_per_second=0.001)
    for rides in (1, 2, 3):
        world.runner.drain([version])
        for _ in range(10 * rides):
            world.topics.append("r", b"c", b"{}", 9)
        world.runner.drain([world.query("T").version])
        watching.step()
    assert watching.growth(version) is not None
    assert "it does not catch up at" in watching.wait(version, 0.0)
    world.run("ABORT UPGRADE OF T;")
    watching.step()
    assert watching.growth(version) is None


class Stubborn(MemoryRunner):
    """Does not bring two versions to one position, once."""

    failures = 1

    def stop_at_same_offsets(self, old, candidate, *, may_leave=True):
        if self.failures:
            self.failures -= 1
            raise KsqlError("they do not come to the same offsets")
        return super().stop_at_same_offsets(old, candidate, may_leave=may_leave)


def not_met():
    """A candidate that its supervisor could not cut over once."""
    world = World(RIDES, COUNT, runner=Stubborn)
    world.feed("r", ride("a", "x", 5, 1))
    world.run(FILTERED)
    world.drain()
    now = iter(range(100))
    watching = RebuildSupervisor(world.engine, Settings(), clock=lambda: float(next(now)))
    watching.step()
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    return world, watching, version


def test_cut_over_that_fails_leaves_both_and_is_tried_again():
    world, watching, version = not_met()
    assert watching.problem(version) == "they do not come to the same offsets"
    assert len(world.runner.running) == 2
    watching.step()
    watching.step()
    assert not world.catalog.rebuilds
    assert watching.problem(version) == ""


def test_another_rollback_has_no_trouble_of_an_aborted_one():
    world = World(RIDES, COUNT, runner=Stubborn)
    world.feed("r", ride("a", "x", 5, 1), ride("a", "x", 50, 2))
    world.runner.failures = 0
    rebuilt(world)
    world.runner.failures = 1
    watching = RebuildSupervisor(world.engine, Settings(), clock=lambda: 0.0)
    world.run("ROLLBACK UPGRADE OF T;")
    world.drain()
    watching.step()
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    assert watching.problem(version) == "they do not come to the same offsets"
    world.run("ABORT UPGRADE OF T;")
    assert watching.problem(version) == ""
    world.run("ROLLBACK UPGRADE OF T;")
    assert watching.problem(version) == ""
    world.drain()
    watching.step()  # the clock is stopped: the second one does not rest for the first one
    assert not world.catalog.rebuilds
    assert world.last("T") == {"a": {"N": 2}}


def test_candidate_that_fails_after_a_failed_cut_over_is_kept_by_its_failure():
    world, watching, version = not_met()
    assert watching.wait(version, 0.0) == "they do not come to the same offsets"
    progressing(world, problem="the candidate's disk is full")
    assert watching.wait(version, 0.0) == "the candidate's disk is full"


def test_supervisor_forgets_what_was_given_up():
    world = World(RIDES, COUNT, runner=Stubborn)
    world.feed("r", ride("a", "x", 5, 1))
    world.run(FILTERED)
    world.drain()
    watching = supervisor(world)
    watching.step()
    assert watching._failed
    world.run("ABORT UPGRADE OF T;")
    watching.step()
    assert not watching._failed


def test_former_version_is_kept_for_a_time(world):
    rebuilt(world)
    query_id = world.query("T").id
    assert world.catalog.former_versions[query_id].query.version == QueryVersion(query_id)
    world.engine.now_ms = lambda: 86_400_001
    supervisor(world).step()
    assert not world.catalog.former_versions
    assert QueryVersion(query_id) not in world.catalog.versions


@pytest.mark.parametrize(
    ("problem", "is_kept"),
    [
        (FORMER_NOT_KEPT(query_id="Q"), True),
        (ROWS_LOST(query_id="Q", topic="t", loss="was deleted"), False),
    ],
)
def test_former_version_is_kept_as_long_as_the_cut_over_writes_to_its_topic(
    world, monkeypatch, problem, is_kept
):
    """The difference of a large table takes longer than ``ksql.upgrade.keep.ms`` may be."""
    rebuilt(world)
    world.engine.now_ms = lambda: 86_400_001

    def check(_query):
        raise problem

    monkeypatch.setattr(world.runner, "check_former", check)
    supervisor(world).step()
    assert bool(world.catalog.former_versions) is is_kept
    monkeypatch.undo()
    supervisor(world).step()
    assert not world.catalog.former_versions


def test_former_version_that_is_rolled_back_is_not_asked_for_each_second(world, monkeypatch):
    """Each try would read the command topic to its end, and hold up statements."""
    rebuilt(world)
    world.engine.now_ms = lambda: 86_400_001
    world.run("ROLLBACK UPGRADE OF T;")
    transactions, begin = [], world.engine.log.begin

    def counted():
        transactions.append(1)
        return begin()

    monkeypatch.setattr(world.engine.log, "begin", counted)
    progressing(world, problem="it rests")  # so that it is not cut over
    watching = supervisor(world)
    watching.step()
    assert world.catalog.former_versions
    assert not transactions
    world.run("ABORT UPGRADE OF T;")
    watching.step()
    assert not world.catalog.former_versions


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


@pytest.mark.parametrize(
    ("start", "said"), [("earliest", True), ("1970-01-01T00:00:00", True), ("now", False)]
)
def test_rebuild_with_a_start_says_which_records_are_gone(world, start, said):
    """Those after a stated time may be among them."""
    world.topics.lost = lambda _name: 7
    [answer] = world.run(FILTERED.replace("'rebuild'", f"'rebuild', START_MODE='{start}'"))
    promised = {each.name: each.note for each in answer.upgrade.guarantees}
    assert ("gone at the beginning are R: 7 records" in promised["backfill"]) is said


def test_lost_beginning_of_a_table_needs_a_start(world):
    """Its rows that are gone would vanish from the result, without a word."""
    world.run("CREATE TABLE D (D STRING PRIMARY KEY, C INT) WITH (KAFKA_TOPIC='d', PARTITIONS=1);")
    world.run("CREATE STREAM J AS SELECT R.D AS D, M, C FROM R JOIN D ON R.D = D.D;")
    world.topics.lost = {"d": 7}.get
    left = "CREATE OR REPLACE STREAM J{} AS SELECT R.D AS D, M, C FROM R LEFT JOIN D ON R.D = D.D;"
    error = world.refuse(left.format(" WITH (REPLACE_MODE='rebuild')"))
    assert "have lost their beginning" in error.message
    assert "Gone by retention or deletion are D: 7 records." in error.detail
    assert (
        f"{BESIDE}, without the records that are gone (D: 7 records)"
        in world.refuse(left.format("")).hint
    )
    world.run(left.format(" WITH (REPLACE_MODE='rebuild', START_MODE='earliest')"))
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
    running = set(world.runner.running)
    world.run("ROLLBACK UPGRADE OF T;")
    world.run("ABORT UPGRADE OF T;")
    assert world.catalog.former_versions
    assert set(world.runner.running) == running
    assert world.last("T") == {"a": {"N": 1}, "b": None}
    world.run("ROLLBACK UPGRADE OF T;")
    world.drain()
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 2}, "b": {"N": 1}}


def test_abort_of_a_streams_rollback_leaves_no_trace():
    world = World(RIDES, "CREATE STREAM F AS SELECT B, M FROM R;")
    more = (
        "CREATE OR REPLACE STREAM F WITH (REPLACE_MODE='rebuild') AS SELECT B, M + 1 AS M FROM R;"
    )
    rebuilt(world, more)
    before = world.catalog, set(world.topics.known), set(world.runner.running)
    world.run("ROLLBACK UPGRADE OF F;")
    world.feed("r", ride("a", "x", 5, 1))
    world.run("ABORT UPGRADE OF F;")
    assert (world.catalog, set(world.topics.known), set(world.runner.running)) == before
    rebuilt(world, "ROLLBACK UPGRADE OF F;")
    world.feed("r", ride("a", "x", 7, 2))
    assert world.out("F") == [("a", {"M": 6}, 1), ("a", {"M": 7}, 2)]


def test_drop_takes_all_versions_and_their_topics(world):
    rebuilt(world)
    world.run(BY_DOCK)
    world.run("DROP TABLE T;")
    assert not world.runner.running
    assert [name for name in world.topics.known if "query_" in name] == []


def explained(world, text=BY_DOCK, **settings):
    [answer] = world.run(f"EXPLAIN {text}", **settings)
    return answer.query_description.upgrade


def ends_of(world):
    """Let the topics end where they do."""
    world.services.monitor.ends = lambda topics: {
        (topic, 0): (0, len(world.topics.records.get(topic, ()))) for topic in topics
    }


def test_explain_says_which_modes_are_possible(world):
    world.services.monitor.ends = lambda topics: {(topic, 0): (2, 9) for topic in topics}
    in_place, rebuild, backfill = explained(world).modes
    assert not in_place.possible
    assert any("GROUP BY" in reason for reason in in_place.reasons)
    assert rebuild.possible
    assert (backfill.mode, backfill.possible) == ("backfill", False)
    assert any("no aggregate is added" in reason for reason in backfill.reasons)
    [extent] = explained(world).reads
    assert (extent.source, extent.topic, extent.records, extent.lost) == ("R", "r", 7, 2)
    assert not world.catalog.rebuilds


@pytest.mark.parametrize("mode", ["in_place", "rebuild", "auto"])
@pytest.mark.parametrize("change", ["B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY B", "WHERE"])
def test_explain_plans_each_mode_once(world, mode, change):
    select = change if change != "WHERE" else "D AS B, COUNT(*) AS N FROM R GROUP BY D"
    planned, dry_run = [], world.engine.dry_run

    def counted(*given):
        planned.append(given)
        return dry_run(*given)

    world.engine.dry_run = counted
    text = f"CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='{mode}') AS SELECT {select};"
    assert len(explained(world, text).modes) == 3
    assert len(planned) == 3


def test_explain_estimates_the_bytes_from_records(world):
    ends_of(world)
    [extent] = explained(world).reads
    sizes = [len(r.key) + len(r.value) for r in world.topics.records["r"]]
    assert (extent.records, extent.sampled, extent.bytes) == (3, 3, sum(sizes))
    assert extent.begins == 1
    assert not extent.compacted


def test_explain_samples_the_beginning_and_the_end(world):
    for n in range(200):
        world.topics.append("r", b"c", b"x" * n, n)
    ends_of(world)
    [extent] = explained(world).reads
    looked_at = [*world.topics.records["r"][:50], *world.topics.records["r"][-50:]]
    mean = sum(len(r.key) + len(r.value) for r in looked_at) / 100
    assert (extent.sampled, extent.bytes) == (100, round(mean * 203))


def test_explain_counts_from_the_start_on(world):
    ends_of(world)
    world.engine.now_ms = lambda: 10
    for start, left in (("now", 0), ("1970-01-01T00:00:00.003", 1), ("earliest", 3)):
        text = BY_DOCK.replace("'rebuild'", f"'rebuild', START_MODE='{start}'")
        assert explained(world, text).reads[0].records == left


def test_explain_knows_a_compacted_topic_and_an_empty_one(world):
    ends_of(world)
    world.topics.known["r"] = replace(
        world.topics.known["r"], configs={"cleanup.policy": "compact,delete"}
    )
    world.topics.records["r"].clear()
    [extent] = explained(world).reads
    assert (extent.records, extent.bytes, extent.begins, extent.compacted) == (0, None, None, True)


def test_explain_says_since_when_the_query_has_results(world):
    ends_of(world)
    assert explained(world).estimate.results_since == 1
    world.services.monitor.ends = lambda _topics: {}
    assert explained(world).estimate.results_since is None


def test_explain_does_without_a_result_that_may_not_be_read(world):
    ends_of(world)
    read = world.services.records.read

    def denied(spans, most=None):
        if ("T", 0) in spans:
            raise KsqlError("T may not be read")
        return read(spans, most)

    world.services.records.read = denied
    report = explained(world)
    assert report.estimate.results_since is None
    assert report.reads[0].sampled == 3


def test_explain_of_a_lost_beginning_says_what_is_there(world):
    """A rebuild without a start is refused, and yet its sources are shown."""
    ends_of(world)
    world.topics.lost = lambda _name: 7
    report = explained(world)
    assert not report.accepted
    assert "have lost their beginning" in report.modes[1].reasons[0]
    assert report.reads[0].begins == 1


def progressing(world, **facts):
    """Let the runner know more of all versions."""
    progress = world.runner.progress
    world.runner.progress = lambda version: progress(version)._replace(**facts)


@pytest.mark.parametrize(
    ("measured", "limit", "expected"),
    [
        (0.0, "0", (50_000.0, "assumed", 1)),
        (2.0, "0", (2.0, "measured", 2)),
        (2.0, "1", (1.0, "limit", 3)),
        (2.0, "3", (2.0, "measured", 2)),
    ],
)
def test_explain_estimates_the_time(world, measured, limit, expected):
    ends_of(world)
    progressing(world, batch_rate=measured, state_bytes=7, free_bytes=9 + LEAST)
    key = "ksql.upgrade.rebuild.max.records.per.second"
    world.settings = Settings({**world.settings.server, key: limit})
    estimate = explained(world).estimate
    assert (estimate.rate, estimate.rate_from, estimate.seconds) == expected
    assert (estimate.state_bytes, estimate.free_bytes) == (7, 9 + LEAST)


def test_no_room_for_a_second_state(world):
    progressing(world, state_bytes=2000, free_bytes=LEAST + 1999)
    error = world.refuse(BY_DOCK)
    assert "no room for a second state" in error.message
    assert "2,000 bytes, and 268,437,455 are free" in error.detail
    assert "268,435,456 must stay free" in error.detail
    refused = explained(world).modes[1]
    assert not refused.possible
    assert "268,437,455 are free" in refused.reasons[0]
    assert not world.catalog.rebuilds
    progressing(world, state_bytes=2000, free_bytes=LEAST + 2000)
    world.run(BY_DOCK)
    assert world.catalog.rebuilds


def test_no_room_that_must_stay_free(world):
    progressing(world, state_bytes=0, free_bytes=LEAST - 1)
    error = world.refuse(BY_DOCK.replace("'rebuild'", "'rebuild', START_MODE='now'"))
    assert "no room for a second state" in error.message


class Ending(UpgradeHistory):
    """Notes the ends of rebuilds."""

    def __init__(self):
        self.ended = []

    def rebuild_ended(self, candidate, reason):
        self.ended.append((candidate, reason))


class Disk:
    """The disk of all states: each candidate takes a part of it."""

    def __init__(self, world, free):
        self.world, self.free = world, free
        world.runner.free_bytes = self.left
        self.watch = RoomWatch(world.engine, Settings(), lambda: True)

    def left(self, _version):
        return self.free - 1000 * len(self.world.catalog.rebuilds)


def test_rebuild_that_fills_the_disk_is_ended_alone(world):
    world.run("CREATE TABLE U AS SELECT D, COUNT(*) AS N FROM R GROUP BY D;")
    world.run(BY_DOCK)
    world.run(
        "CREATE OR REPLACE TABLE U WITH (REPLACE_MODE='rebuild') AS "
        "SELECT D, COUNT(*) AS N FROM R WHERE M > 6 GROUP BY D;"
    )
    first, second = world.query("T"), world.query("U")
    disk = Disk(world, LEAST + 2000)
    disk.watch.step()
    assert set(world.catalog.rebuilds) == {first.id, second.id}
    disk.free -= 1
    for left in ({first.id}, {first.id}):  # the last one made room enough
        disk.watch.step()
        assert set(world.catalog.rebuilds) == left
    assert set(world.runner.running) == {
        first.version,
        second.version,
        world.catalog.rebuilds[first.id].candidate.version,
    }
    disk.free = 0
    disk.watch.step()
    assert not world.catalog.rebuilds
    assert {topic for topic in world.topics.known if "changelog" in topic} == set()
    world.feed("r", ride("a", "x", 5, 4))
    assert world.last("T")["a"] == {"N": 3}


def test_rebuild_that_is_ended_for_its_disk_says_so(world):
    world.engine.history = ending = Ending()
    world.run(BY_DOCK)
    version = world.catalog.rebuilds[world.query("T").id].candidate.version
    Disk(world, LEAST).watch.step()
    assert ending.ended == [
        (
            version,
            "The disk of its state had 268,434,456 bytes left; at least 268,435,456 must stay "
            "free (ksql.upgrade.rebuild.min.free.bytes).",
        )
    ]


def test_room_is_looked_at_by_who_leads(world):
    world.run(BY_DOCK)
    disk = Disk(world, 0)
    RoomWatch(world.engine, Settings(), lambda: False).step()
    assert world.catalog.rebuilds
    world.engine.runner.free_bytes = lambda _version: None
    disk.watch.step()
    assert world.catalog.rebuilds


def test_rollback_is_not_ended_for_its_disk(world):
    rebuilt(world)
    world.run("ROLLBACK UPGRADE OF T;")
    Disk(world, 0).watch.step()
    assert world.catalog.rebuilds


@pytest.mark.parametrize("mode", ["rebuild", "backfill"])
def test_explain_accepts_nothing_that_has_no_room(world, mode):
    progressing(world, state_bytes=2000, free_bytes=LEAST + 1999)
    select = "SELECT B, COUNT(*) AS N, SUM(M) AS S FROM R GROUP BY B;"
    text = f"CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='{mode}') AS {select}"
    assert "no room for a second state" in world.refuse(text).message
    report = explained(world, text)
    assert not report.accepted
    assert "no room for a second state" in report.reasons[0]
    assert [shown.mode for shown in report.modes if shown.possible] == ["in_place"]


def test_room_is_no_matter_where_less_may_be_needed(world):
    progressing(world, state_bytes=2000, free_bytes=LEAST + 1999)
    world.run(BY_DOCK.replace("'rebuild'", "'rebuild', START_MODE='now'"))
    assert world.catalog.rebuilds


def test_room_is_no_matter_for_a_rollback(world):
    rebuilt(world)
    progressing(world, state_bytes=2000, free_bytes=1999)
    world.run("ROLLBACK UPGRADE OF T;")
    assert world.catalog.rebuilds


def test_refusal_names_no_statement_that_would_be_refused_as_well():
    world = World(RIDES, "CREATE STREAM D WITH (VALUE_FORMAT='DELIMITED') AS SELECT B, M FROM R;")
    error = world.refuse(
        "CREATE OR REPLACE STREAM D WITH (VALUE_FORMAT='DELIMITED') AS SELECT B, M, D FROM R;"
    )
    assert BESIDE not in error.hint


COLUMNS = "The following columns are changed, missing or reordered"
KEYS = "Key columns must be identical"
DELIMITED = "CREATE TABLE T WITH (VALUE_FORMAT='DELIMITED') AS SELECT B, COUNT(*) AS N FROM R"


@pytest.mark.parametrize(
    ("running", "replaced", "facts"),
    [
        (COUNT, "SELECT M, COUNT(*) AS N FROM R GROUP BY M", [KEYS]),
        (COUNT, "SELECT B, MAX(D) AS N FROM R GROUP BY B", [COLUMNS]),
        (COUNT, "SELECT M, MAX(D) AS N FROM R GROUP BY M", [KEYS, COLUMNS]),
        (
            f"{DELIMITED} GROUP BY B;",
            "SELECT B, COUNT(*) AS N, MAX(M) AS M FROM R GROUP BY B",
            ["The records of DELIMITED have as many fields as 'T' has columns"],
        ),
    ],
)
def test_a_rebuild_is_refused_with_each_reason_once(running, replaced, facts):
    world = World(RIDES, running)
    format_ = ", VALUE_FORMAT='DELIMITED'" if "DELIMITED" in running else ""
    text = f"CREATE OR REPLACE TABLE T WITH ({{}}{format_}) AS {replaced};"
    message = world.refuse(text.format("REPLACE_MODE='rebuild'")).message
    assert [message.count(fact) for fact in facts] == [1] * len(facts)
    assert message.count(" AND (") == len(facts) - 1
    in_place = text.format("REPLACE_MODE='in_place'")
    [answer] = world.run(f"EXPLAIN {in_place}")
    rebuild = answer.query_description.upgrade.modes[1]
    assert rebuild.reasons == (message,)


def test_refusal_has_a_statement_for_sources_that_have_lost_their_beginning(world):
    world.topics.lost = lambda _name: 7
    error = world.refuse(BY_DOCK.replace("'rebuild'", "'in_place'"))
    way_out = f"{BESIDE}, without the records that are gone (R: 7 records):\n"
    world.run(error.hint.split(way_out)[1].split("\nOr create")[0])
    assert world.catalog.rebuilds
    error = World(RIDES, COUNT).refuse(BY_DOCK.replace("'rebuild'", "'in_place'"))
    assert "START_MODE" not in error.hint


def test_refusal_remains_one_where_the_topic_of_a_source_is_gone(world):
    def gone(name):
        raise UnknownTopic(name)

    world.topics.lost = gone
    error = world.refuse(BY_DOCK.replace("'rebuild'", "'in_place'"))
    assert "GROUP BY: B became D" in error.detail
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


def test_a_candidate_has_no_rows_of_one_that_never_counted(world):
    hidden = QueryVersion(world.query("T").id, 2).results_topic("default_")
    world.topics.create(Topic(hidden, 3))  # its server has died before its command was written
    world.run(FILTERED)
    assert world.topics.known[hidden].partitions == 1


def test_a_candidates_topic_takes_the_records_that_the_results_topic_takes(world):
    """Else rows would be missing at the cut-over, or could not be written then."""
    limits = {"max.message.bytes": "9000000", "message.timestamp.before.max.ms": "60000"}
    configs = {"cleanup.policy": "compact,delete", "retention.ms": "1"} | limits
    world.topics.known["T"] = Topic("T", 1, configs=configs)
    world.run(FILTERED)
    hidden = QueryVersion(world.query("T").id, 2).results_topic("default_")
    assert world.topics.known[hidden].configs == {"cleanup.policy": "compact"} | limits


class Users(UpgradeHistory):
    """Notes who has asked for which upgrade."""

    def __init__(self):
        self.entries = []

    def begun(self, upgrade):
        self.entries.append(("begun", upgrade.user))

    def refused(self, upgrade):
        self.entries.append(("refused", upgrade.user))

    def replayed(self, upgrade):
        self.entries.append(("begun", upgrade.user))

    def rebuild_begun(self, upgrade, candidate, *, rollback=False):
        self.entries.append((candidate.number, upgrade.user))

    rebuild_replayed = rebuild_begun


def test_history_learns_who_has_asked_for_an_upgrade(world):
    world.engine.history = Users()
    more = "CREATE OR REPLACE TABLE T AS SELECT B, COUNT(*) AS N, MAX(M) AS X FROM R GROUP BY B;"
    for text in (more, FILTERED.replace("FROM", ", MAX(M) AS X FROM")):
        execute.run(text, world.services, world.settings, {}, {}, user="ada")
    with pytest.raises(execute.RequestFailed):
        execute.run(FILTERED, world.services, world.settings, {}, {}, user="bob")
    known = [("begun", "ada"), (3, "ada")]
    assert world.engine.history.entries == [*known, ("refused", "bob")]
    again = World(log=world.log, runner=lambda _topics: world.runner, topics=world.topics)
    again.engine.history = Users()
    for offset, command in enumerate(world.log.commands):
        again.engine.replay(offset, command)
    assert again.engine.history.entries == known


def test_commands_that_are_no_upgrades_name_no_user():
    world = World()
    execute.run(RIDES + COUNT, world.services, world.settings, {}, {}, user="ada")
    assert {command.user for command in world.log.commands} == {""}


AVRO = "CREATE TABLE T WITH (VALUE_FORMAT='AVRO') AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
WIDER = (
    "CREATE OR REPLACE TABLE T WITH (VALUE_FORMAT='AVRO', REPLACE_MODE='rebuild') AS "
    "SELECT B, COUNT(*) AS N, MAX(M) AS X FROM R GROUP BY B;"
)


@pytest.fixture
def registered():
    world = World(RIDES, AVRO, registry=MemoryRegistry())
    world.feed("r", ride("a", "x", 5, 1), ride("b", "y", 7, 3))
    return world


def versions(world):
    registry = world.engine.registry
    return {subject: len(registry.ids(subject)) for subject in registry.subjects()}


def test_schema_is_registered_by_the_cut_over(registered):
    registered.run(WIDER)
    registered.drain()
    assert versions(registered)["T-value"] == 1
    supervisor(registered).step()
    assert versions(registered) == {"T-value": 2}


def test_abort_leaves_no_schema(registered):
    before = versions(registered)
    registered.run(WIDER)
    registered.drain()
    registered.run("ABORT UPGRADE OF T;")
    assert versions(registered) == before


def test_drop_leaves_no_schema_of_a_candidate(registered):
    registered.run(WIDER)
    registered.drain()
    registered.run("DROP TABLE T DELETE TOPIC;")
    assert versions(registered) == {}


def test_cut_over_that_fails_leaves_no_schema(registered):
    registered.run(WIDER)
    registered.drain()

    class Full(Exception):
        pass

    def append(*_):
        raise Full

    appended = MemoryLog.begin
    broken = SimpleNamespace(offset=len(registered.log.commands), check=lambda _: None)
    broken.append = append
    registered.log.begin = lambda: nullcontext(broken)
    with pytest.raises(KsqlError):
        registered.engine.cut_over(registered.query("T").id, Settings())
    assert versions(registered)["T-value"] == 1
    registered.log.begin = lambda: appended(registered.log)
    supervisor(registered).step()
    assert versions(registered) == {"T-value": 2}


def test_rollback_registers_nothing(registered):
    registered.run(WIDER)
    registered.drain()
    supervisor(registered).step()
    before = versions(registered)
    registered.run("ROLLBACK UPGRADE OF T;")
    registered.feed("r", ride("c", "x", 5, 4))
    supervisor(registered).step()
    assert versions(registered) == before
    assert registered.query("T").version_number == 0


def test_schema_that_does_not_fit_is_refused_at_once(registered):
    registry = registered.engine.registry

    def check(subject, schema):
        raise SchemaRejected(subject, "it is locked")

    registry.check = check
    assert "it is locked" in registered.refuse(WIDER).text()
    assert not registered.catalog.rebuilds


OPEN = Schema("JSON", '{"type":"object","properties":{"B":{"type":"string"}}}')
BY_SCHEMA = (
    "TABLE T WITH ({}KEY_FORMAT='JSON_SR', VALUE_FORMAT='JSON_SR') AS SELECT B, D, "
    "COUNT(*) AS N FROM R {} GROUP BY B, D;"
)


def test_rows_have_the_schema_ids_of_the_result_whatever_its_subjects_had_before():
    """A subject whose latest schema is open gets open ones. A candidate's new subject has none."""
    registry = MemoryRegistry()
    for side in ("key", "value"):
        registry.register(f"T-{side}", OPEN)
    world = World(RIDES, "CREATE " + BY_SCHEMA.format("", ""), registry=registry)
    world.feed("r", ride("a", "x", 5, 1), ride("b", "y", 7, 3), ride("b", "y", 1, 4))
    known, log = set(world.topics.rows("T")), world.topics.records["T"]
    before = len(log)
    mode = "REPLACE_MODE='rebuild', "
    rebuilt(world, "CREATE OR REPLACE " + BY_SCHEMA.format(mode, "WHERE M < 7"))
    [row] = log[before:]
    assert row.key in known
    world.feed("r", ride("a", "x", 9, 5))
    before = len(log)
    rebuilt(world, "ROLLBACK UPGRADE OF T;")
    assert {row.key for row in log[before:]} <= known
    assert set(world.topics.rows("T")) == known


class Failing(MemoryRunner):
    """The first version of a query fails from some time on."""

    fails = False

    def _advance(self, query):
        is_first = self.running.get(QueryVersion(QueryId("CTAS_T_1"))) is query
        if self.fails and is_first:
            raise KsqlError("the function was too slow")
        return super()._advance(query)


def failing(create):
    world = World(RIDES, create, runner=Failing)
    world.feed("r", ride("a", "x", 50, 1), ride("b", "y", 7, 2))
    world.runner.fails = True
    world.topics.append("r", b"c", b'{"D": "z", "M": 99}', 3, None)
    return world


def test_table_whose_query_fails_is_cut_over_without_it():
    world = failing(COUNT)
    world.run(FILTERED)
    version = world.catalog.rebuilds[QueryId("CTAS_T_1")].candidate.version
    world.runner.drain([version])
    history = world.engine.history = Ends()
    supervisor(world).step()
    assert world.last("T") == {"a": {"N": 1}, "b": None, "c": {"N": 1}}
    [(ended, switch)] = history.entries
    assert ended == version
    assert "the function was too slow" in switch.left
    assert switch.offsets == {"r": {0: 3}}


class Ends(UpgradeHistory):
    """Notes the cut-overs."""

    def __init__(self):
        self.entries = []

    def rebuilt(self, candidate, switch):
        self.entries.append((candidate, switch))


def test_stream_whose_query_fails_waits_for_it(monkeypatch):
    """Results between the two positions would be lost."""
    world = World(RIDES, "CREATE STREAM F AS SELECT B, M FROM R;", runner=Failing)
    world.feed("r", ride("a", "x", 5, 1))
    query_id = world.query("F").id
    advance = world.runner._advance

    def broken(running):
        if world.runner.running.get(QueryVersion(query_id)) is running:
            raise KsqlError("the function was too slow")
        return advance(running)

    world.run(
        "CREATE OR REPLACE STREAM F WITH (REPLACE_MODE='rebuild') AS SELECT B, M + 1 AS M FROM R;"
    )
    world.drain()
    monkeypatch.setattr(world.runner, "_advance", broken)
    watching = supervisor(world)
    watching.step()
    assert world.catalog.rebuilds
    trouble = watching.problem(world.catalog.rebuilds[query_id].candidate.version)
    assert "the function was too slow" in trouble
    monkeypatch.setattr(world.runner, "_advance", advance)
    RebuildSupervisor(world.engine, Settings()).step()
    assert not world.catalog.rebuilds
