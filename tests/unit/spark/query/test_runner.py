"""Lives begin, go on and end under the runner; what it does not know it moves aside."""

from __future__ import annotations

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.core.config import Settings
from ksql.core.error_table import CHECKPOINT_UNUSABLE
from ksql.core.files import Trash
from ksql.core.process.lease import Lease, NotLeader
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.kafka.ranges import Range
from ksql.spark.checkpoint import incarnations
from ksql.spark.query.batch_limits import BatchLimits
from ksql.spark.query.compile import task_environment
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.query_supervisor import QuerySupervisor
from ksql.spark.query.runner import SparkRunner
from ksql.spark.query.spec import QueryDriver, RetryPolicy, RunnerContext, State
from ksql.spark.query.stopping import stop_soon
from ksql.spark.query.switching import BatchHalfWritten, SwitchRefused
from ksql.spark.session.runtime import SparkRuntime
from ksql.spark.task.launch_right import LaunchOver, LaunchRight
from ksql.spark.task.trial_task import TrialFailed
from tests.unit.world import World
from tests.waits import PATIENCE_S, await_true

OWNER = "_confluent-ksql-default_query_"


class Spark:
    """Starts nothing; writes what Spark writes first."""

    def __init__(self):
        self.started = []
        self.launched = []
        self.tried = []
        self.announced = []
        self.forgotten = []
        self.rested = []

    def launch(self, spec):
        self.started.append(spec)
        (spec.checkpoint / "metadata").write_text("{}")
        launched = SimpleNamespace(isActive=True, stop=lambda: None, exception=lambda: None)
        self.launched.append(launched)
        return launched

    def launch_now(self, spec):
        """Launch it as a test has it by then."""
        return self.launch(spec)

    def host(self, place, prepare, on_failure, vet):
        driver = QueryDriver(prepare, self.launch_now, lambda _query, _timeout: True, vet=vet)
        return QuerySupervisor(place, driver, RetryPolicy(), Still(), on_failure)

    def watch(self, _query):
        pass

    def try_out(self, spec, ranges, limit_s):
        self.tried.append((spec, ranges, limit_s))

    def announce(self, name, _link):
        self.announced.append(name)

    def forget(self, name, _begun):
        self.forgotten.append(name)

    def rest(self, name):
        self.rested.append(name)

    def end_at(self, name, offsets):
        """Nothing of it has an end."""

    begin = SparkRuntime.begin


class Still:
    """Counts nothing."""

    def begin(self, _incarnation):
        pass

    def add(self, _query):
        pass


class Desk:
    def __init__(
        self,
        folder,
        preflight=None,
        settings=None,
        runtime=None,
        names=None,
        bounds=None,
        **context,
    ):
        self.folder = folder / "queries"
        self.trash = Trash(folder / "aside", lambda: 0)
        self.runtime = runtime or Spark()
        self.ended: list[Any] = []
        numbered = (f"life{number}" for number in count(1))
        self.runner = SparkRunner(
            self.runtime,
            RunnerContext(
                settings=Settings(settings or {}),
                directory=self.folder,
                consumer={},
                producer={},
                log_topic=None,
                **context,
            ),
            lambda topics: {(topic, 0): 7 for topic in topics},
            trash=self.trash,
            new_incarnation=names or numbered.__next__,
            end_groups=self.ended.append,
            preflight=preflight or Preflight(),
            bounds=bounds or BatchLimits(),
        )

    def application(self):
        return self.runtime.started[-1].application


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@pytest.fixture(scope="module")
def query():
    world = World(
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM O AS SELECT K, A FROM S;",
        log=MemoryLog(),
    )
    return next(iter(world.engine.catalog.queries.values()))


def test_a_query_that_begins_has_an_incarnation_before_it_starts(desk, query):
    desk.runner.start(query)
    assert desk.application() == f"{OWNER}{query.id}-life1"
    assert desk.runtime.started[0].incarnation == "life1"


def test_stopped_and_started_query_keeps_its_incarnation(desk, query):
    desk.runner.start(query)
    desk.runner.stop(query.version)
    assert desk.runner.application(query.version) == f"{OWNER}{query.id}-life1"
    desk.runner.resume([query])
    assert desk.application() == f"{OWNER}{query.id}-life1"


def test_a_query_that_runs_is_not_started_a_second_time(desk, query):
    desk.runner.start(query)
    (running,) = desk.runner.running.values()
    desk.runner.resume([query])
    desk.runner.resume([query])
    assert list(desk.runner.running.values()) == [running]
    assert len(desk.runtime.started) == 1


def test_a_query_that_rests_is_tried_at_once(desk, query):
    desk.runner.resume([query])
    (resting,) = desk.runner.running.values()
    assert resting._next_try > time.monotonic()
    desk.runner.resume([query])
    assert list(desk.runner.running.values()) == [resting]
    assert resting._next_try <= time.monotonic()


def test_an_id_that_comes_again_has_another_incarnation(desk, query):
    for expected in ("life1", "life2"):
        desk.runner.start(query)
        assert desk.application().endswith(f"-{expected}")
        desk.runner.stop(query.version)
        desk.runner.forget(query.version)
    assert [bool(names.fullmatch(f"{OWNER}{query.id}-life1-0-0")) for names in desk.ended] == [
        True,
        False,
    ]
    assert desk.runtime.forgotten == [query.id] * 2


def test_a_new_query_does_not_take_over_what_lies_under_its_name(desk, query):
    desk.runner.start(query)
    desk.runner.running.clear()  # a crash before its command was written
    desk.runner.start(query)
    assert desk.application().endswith("-life2")
    (moved,) = desk.trash.entries()
    assert incarnations.incarnation_of(moved.entry / query.id) == incarnations.Incarnation("life1")


def test_a_checkpoint_that_is_gone_is_an_error_of_its_query(desk, query):
    desk.runner.resume([query])
    status = desk.runner.running[query.version].status()
    assert status.state is State.ERROR
    assert f"the checkpoint of query {query.id} is missing" in status.last_error
    assert f"ksql.state.anew={query.id}" in status.last_error
    assert desk.runtime.started == []
    assert not desk.folder.exists()


@pytest.mark.parametrize("restart", ["all", "this"])
def test_restarts_on_request(tmp_path, query, restart, caplog):
    desk = Desk(tmp_path, start_over=frozenset({query.id if restart == "this" else restart}))
    desk.runner.resume([query])
    assert desk.application().endswith("-life1")
    assert "query_begins_anew" in [record.message for record in caplog.records]


def test_it_restarts_once_in_a_start_of_the_server(tmp_path, query):
    desk = Desk(tmp_path, start_over=frozenset({query.id}))
    desk.runner.resume([query])
    desk.runner.stop(query.version)
    shutil.rmtree(desk.runner.checkpoint(query.version))
    desk.runner.resume([query])
    assert "is missing" in str(desk.runner.running[query.version].status().last_error)
    assert [spec.incarnation for spec in desk.runtime.started] == ["life1"]


def test_a_query_whose_checkpoint_fits_has_no_permit_any_more(tmp_path, query):
    Desk(tmp_path).runner.start(query)
    desk = Desk(tmp_path, start_over=frozenset({"all"}))
    desk.runner.resume([query])
    desk.runner.stop(query.version)
    shutil.rmtree(desk.runner.checkpoint(query.version))
    desk.runner.resume([query])
    assert "is missing" in str(desk.runner.running[query.version].status().last_error)
    assert len(desk.runtime.started) == 1


def test_another_one_does_not(tmp_path, query):
    desk = Desk(tmp_path, start_over=frozenset({"OTHER"}))
    desk.runner.resume([query])
    assert desk.runner.running[query.version].status().state is State.ERROR
    assert desk.runtime.started == []


def test_unknown_state_is_moved_to_the_trash(desk, query):
    desk.runner.start(query)
    incarnations.begin(desk.folder / "CTAS_GONE_9", "x")
    (desk.folder / "EMPTY").mkdir()
    desk.runner.sweep([query.version])
    assert [path.name for path in desk.folder.iterdir()] == [query.id]
    assert [moved.name.split("-")[-1] for moved in desk.trash.entries()] == ["CTAS_GONE_9"]


@pytest.mark.parametrize("letters", [120, 200, 255])
def test_a_long_name_is_moved_aside_as_well(desk, letters):
    names = ["A" * (letters - 1) + last for last in "XY"]
    for name in names:
        incarnations.begin(desk.folder / name, "x")
    desk.runner.sweep([])
    assert list(desk.folder.iterdir()) == []
    entries = desk.trash.entries()
    assert sorted(moved.origin for moved in entries) == [str(desk.folder / name) for name in names]
    for moved in entries:
        assert incarnations.incarnation_of(
            moved.entry / Path(moved.origin).name
        ) == incarnations.Incarnation("x")


def test_immovable_state_does_not_stop_the_start(desk, monkeypatch, caplog):
    for name in ("A", "B", "C"):
        incarnations.begin(desk.folder / name, "x")
    usual = Path.rename

    def rename(path, target):
        if path.name == "B":
            raise PermissionError(13, "Permission denied")
        return usual(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    desk.runner.sweep([])
    assert [path.name for path in desk.folder.iterdir()] == ["B"]
    assert [moved.origin[-1] for moved in desk.trash.entries()] == ["A", "C"]
    assert incarnations.incarnation_of(desk.folder / "B") == incarnations.Incarnation("x")
    assert "checkpoint_left" in [record.message for record in caplog.records]


def test_a_directory_that_cannot_be_written_is_reported_as_an_error(desk, query):
    desk.folder.parent.mkdir(exist_ok=True)
    desk.folder.write_text("a file is in the way")
    with pytest.raises(CHECKPOINT_UNUSABLE.base, match=CHECKPOINT_UNUSABLE.pattern):
        desk.runner.start(query)


def test_a_damaged_incarnation_is_forgotten_all_the_same(desk, query):
    desk.runner.start(query)
    (desk.folder / query.id / "life.json").write_text("{")
    desk.runner.stop(query.version)
    assert desk.runner.application(query.version) == f"{OWNER}{query.id}"
    desk.runner.forget(query.version)
    assert not (desk.folder / query.id).exists()
    assert desk.ended == []


def test_a_query_that_stops_is_no_longer_about_to_run(desk, query):
    desk.runner.start(query)
    [(name, link)] = desk.runtime.started[-1].chain.items()
    assert link.begun > 0
    assert not link.exactly_once
    desk.runner.stop(query.version)
    assert desk.runtime.rested == [name]
    assert desk.runner._links.all[name].begun == 0
    desk.runner.resume([query])
    assert desk.runner._links.all[name].begun > link.begun
    desk.runner.forget(query.version)
    assert desk.runner._links.all == {}


def plan_of(spec):
    return json.loads(spec.plan_json)["plan"]


@pytest.mark.parametrize("lost", ["life.json", None])
def test_a_checkpoint_of_before_format_zero_is_an_error_of_its_query(desk, query, lost):
    desk.runner.start(query)
    desk.runner.stop(query.version)
    place = desk.runner.checkpoint(query.version)
    (place / lost).unlink() if lost else (place / "trial.json").write_text("{}")
    desk.runner.resume([query])
    status = desk.runner.running[query.version].status()
    assert status.state is State.ERROR
    assert f"the checkpoint of query {query.id} is older than format zero" in str(status.last_error)
    assert "the last build of version 0.1.0" in str(status.last_error)
    assert len(desk.runtime.started) == 1


def test_a_query_may_begin_anew_over_a_checkpoint_of_before_format_zero(tmp_path, query):
    desk = Desk(tmp_path, start_over=frozenset({query.id}))
    place = desk.runner.checkpoint(query.version)
    place.mkdir(parents=True)
    (place / "metadata").write_text("{}")
    desk.runner.resume([query])
    assert desk.application().endswith("-life1")
    [moved] = desk.trash.entries()
    assert moved.origin == str(place)


def test_a_server_that_is_no_longer_the_leader_ends_its_queries_and_starts_none(desk, query):
    desk.runner.start(query)
    desk.runner.abandon("Another server has taken over.")
    running = desk.runner.running[query.version]
    await_true("the query has stopped", lambda: running.stopped)
    with pytest.raises(NotLeader):
        desk.runner.start(replace(query, id="CSAS_P_2"))
    assert len(desk.runtime.started) == 1


@pytest.mark.parametrize(("said", "read"), [("spark", False), ("workers", True)])
def test_the_workers_read_where_the_server_is_set_so(tmp_path, query, said, read):
    settings = {"ksql.spark.source.reader": said}
    desk = Desk(tmp_path, settings=settings, reader={"bootstrap.servers": "b:1"})
    desk.runner.start(query)
    reader = desk.runtime.started[0].reader
    assert reader == ({"bootstrap.servers": "b:1"} if read else None)


def test_the_lease_travels_with_the_query(tmp_path, query):
    lease = Lease(str(tmp_path / "lease.json"), "me")
    desk = Desk(tmp_path, lease=lease)
    desk.runner.start(query)
    assert task_environment(desk.runtime.started[0]).lease == lease


# --- a batch that does not end


class Endless(Spark):
    """Each query's batch runs on until it is interrupted; notes how long it was waited for."""

    def __init__(self, queries=1):
        super().__init__()
        self.waited = []
        self.interrupted = []
        self.together = threading.Barrier(queries)

    def launch(self, spec):
        started = super().launch(spec)
        started.stop = lambda: self.interrupted.append(spec.query_id)
        return started

    def finish(self, _query, timeout_s):
        self.together.wait(30)
        self.waited.append(timeout_s)
        return False

    def host(self, place, prepare, on_failure, vet):
        driver = QueryDriver(prepare, self.launch, self.finish, vet=vet)
        return QuerySupervisor(place, driver, RetryPolicy(), Still(), on_failure)


STREAMS = (
    "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    "CREATE STREAM O AS SELECT K, A FROM S;"
    "CREATE STREAM P AS SELECT K, A FROM S;"
)


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("TERMINATE CSAS_O_1;", 1),
        ("PAUSE CSAS_O_1;", 1),
        ("DROP STREAM O;", 1),
        ("TERMINATE ALL;", 2),
        ("PAUSE ALL;", 2),
    ],
)
def test_a_batch_that_does_not_end_holds_up_nobody(tmp_path, text, ended):
    """They are stopped together, each within seconds; then another client's statement is done."""
    desk = Desk(tmp_path, runtime=Endless(ended))
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    world.run(text)
    assert len(desk.runtime.waited) == len(desk.runtime.interrupted) == ended
    assert all(0 < waited <= 5 for waited in desk.runtime.waited)
    with ThreadPoolExecutor(1) as other:
        other.submit(world.run, "CREATE STREAM X AS SELECT K, A FROM S;").result(30)
    assert "X" in world.catalog.sources
    assert (desk.folder / "CSAS_O_1").exists() == text.startswith("PAUSE")


def test_a_paused_query_repeats_its_batch(tmp_path):
    desk = Desk(tmp_path, runtime=Endless())
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    world.run("PAUSE CSAS_O_1;")
    before = desk.application()
    world.run("RESUME CSAS_O_1;")
    again = desk.runtime.started[-1]
    assert (again.query_id, len(desk.runtime.started)) == ("CSAS_O_1", 3)
    assert again.application == before.replace("CSAS_P_2-life2", "CSAS_O_1-life1")


def test_a_query_that_takes_long_to_continue_holds_up_nobody(desk):
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    world.run("PAUSE CSAS_O_1;")
    begins, may_begin = threading.Event(), threading.Event()
    usual = desk.runtime.launch

    def launch(spec):
        begins.set()
        assert may_begin.wait(30)
        return usual(spec)

    desk.runtime.launch = launch
    with ThreadPoolExecutor(1) as other:
        resumed = other.submit(world.run, "RESUME CSAS_O_1;")
        assert begins.wait(30)
        world.run("CREATE TYPE T AS STRUCT<A INT>;")
        assert not resumed.done()
        may_begin.set()
        resumed.result(30)
    assert desk.runner.running[QueryVersion(QueryId("CSAS_O_1"))].status().state is State.RUNNING


def test_a_replacement_that_is_rolled_back_still_waits_for_its_batch(tmp_path, query):
    desk = Desk(tmp_path, runtime=Endless())
    desk.runner.start(query)
    desk.runner.stop(query.version)
    assert desk.runtime.waited[0] > 30


# --- a switch that is under way


class Switching(Spark):
    """Batches run until they are interrupted; says when one is waited for, and what was ended."""

    def __init__(self):
        super().__init__()
        self.waits = threading.Event()
        self.ended = []

    def launch(self, spec):
        started = super().launch(spec)
        over = threading.Event()

        def stop():
            started.isActive = False
            self.ended.append(spec.plan_json)
            over.set()

        started.stop, started.over = stop, over
        return started

    def finish(self, query, timeout_s):
        self.waits.set()
        return query.over.wait(min(timeout_s, 0.1) if timeout_s < 5 else timeout_s)

    def host(self, place, prepare, on_failure, vet):
        driver = QueryDriver(prepare, self.launch, self.finish, vet=vet)
        return QuerySupervisor(place, driver, RetryPolicy(), Still(), on_failure)


@pytest.mark.parametrize("text", ["TERMINATE CSAS_O_1;", "PAUSE CSAS_O_1;"])
def test_a_switch_that_waits_for_its_batch_holds_up_nobody_and_is_ended_with_its_query(
    tmp_path, text
):
    desk = Desk(tmp_path, runtime=Switching())
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    before = world.query("O")
    with ThreadPoolExecutor(1) as other:
        replaced = other.submit(
            world.run, "CREATE OR REPLACE STREAM O AS SELECT K, A FROM S WHERE A > 1;"
        )
        assert desk.runtime.waits.wait(30)
        world.run("CREATE TYPE T AS STRUCT<A INT>;")
        assert not replaced.done()
        world.run(text)
        error = replaced.exception(30)
    assert "CSAS_O_1 was not replaced" in str(error)
    assert [spec.query_id for spec in desk.runtime.started] == ["CSAS_O_1", "CSAS_P_2"]
    assert len(desk.runtime.ended) == 1
    assert QueryVersion(QueryId("CSAS_O_1")) not in desk.runner.running
    assert world.catalog.types.keys() == {"T"}
    if text.startswith("PAUSE"):
        assert replace(before, paused=True) == world.query("O")
        world.run("RESUME CSAS_O_1;")
        assert desk.runtime.started[-1].plan_json == desk.runtime.started[0].plan_json
    else:
        assert not (desk.folder / "CSAS_O_1").exists()


def test_a_server_that_ends_ends_the_switch_as_well(tmp_path):
    desk = Desk(tmp_path, runtime=Switching())
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    with ThreadPoolExecutor(1) as other:
        replaced = other.submit(
            world.run, "CREATE OR REPLACE STREAM O AS SELECT K, A FROM S WHERE A > 1;"
        )
        assert desk.runtime.waits.wait(30)
        desk.runner.abandon("Another server has taken over.")
        assert replaced.exception(30) is not None
    assert len(desk.runtime.started) == 2


# --- a plan that is tried, and a batch that is left to it


def begun(place, batch, *, finished, offset=3):
    """What Spark writes of a batch that reads up to that offset."""
    (place / "offsets").mkdir(exist_ok=True)
    (place / "commits").mkdir(exist_ok=True)
    (place / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"s": {{"0": {offset}}}}}')
    if finished:
        (place / "commits" / str(batch)).write_text("v1\n{}")


class Waiting(Desk):
    """A desk where records of topic s wait up to offset 9."""

    def __init__(self, folder, preflight=None):
        ends = {("s", 0): 9}
        bounds = BatchLimits(lambda _topics: {("s", 0): 0}, lambda _topics: ends)
        reader = {"bootstrap.servers": "b:1"}
        super().__init__(folder, preflight, bounds=bounds, reader=reader)


def test_a_plan_is_tried_over_what_its_query_has_not_begun_to_read(tmp_path, query):
    desk = Waiting(tmp_path)
    desk.runner.start(query)
    begun(desk.runner.checkpoint(query.version), 0, finished=True, offset=3)
    desk.runner.prepare_switch(query, replace(query, plan=query.plan + " "))
    [(spec, ranges, limit_s)] = desk.runtime.tried
    assert (plan_of(spec), spec.reader) == (query.plan + " ", {"bootstrap.servers": "b:1"})
    assert ranges == (Range("s", 0, 3, 9),)
    assert limit_s == 60


def test_a_plan_that_fails_when_it_is_tried_asks_nothing_of_the_old_one(desk, query):
    desk.runner.start(query)

    def try_out(_spec, _ranges, _limit_s):
        raise TrialFailed(query.id, "it overruns")

    desk.runtime.try_out = try_out
    with pytest.raises(SwitchRefused, match="was not replaced") as caught:
        desk.runner.prepare_switch(query, replace(query, plan=query.plan + " "))
    assert "it overruns" in caught.value.text()
    assert "goes on unchanged" in caught.value.text()
    assert len(desk.runtime.started) == 1
    assert desk.runner.running[query.version].status().state is State.RUNNING


def test_a_plan_that_is_taken_runs_from_then_on(desk, query):
    desk.runner.start(query)
    new = replace(query, plan=query.plan + " ")
    desk.runner.prepare_switch(query, new)
    assert len(desk.runtime.started) == 1
    desk.runner.commit_switch(new)
    desk.runner.running[query.version].await_first_attempt(30)
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan, new.plan]


def test_a_plan_that_is_not_taken_leaves_the_old_one(desk, query):
    desk.runner.start(query)
    going = desk.runner.running[query.version]
    desk.runner.prepare_switch(query, replace(query, plan=query.plan + " "))
    desk.runtime.launched[-1].isActive = False
    desk.runner.rollback_switch(query)
    assert desk.runner.running[query.version] is going
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan] * 2


def stuck(tmp_path, query, guarantee, mark):
    """A query whose batch 1 fails each time; Kafka holds batches of its groups up to ``mark``."""
    marks = [0]
    desk = Waiting(tmp_path, Preflight(settled=lambda _names, _topic: marks[0]))
    query = replace(query, plan=query.plan.replace("at_least_once", guarantee))
    desk.runner.start(query)
    place = desk.runner.checkpoint(query.version)
    begun(place, 0, finished=True, offset=3)
    begun(place, 1, finished=False, offset=5)
    marks[0] = mark
    usual = desk.runtime.launch

    def launch(spec):
        launched = usual(spec)
        if plan_of(spec) == query.plan:
            launched.isActive = False
            launched.exception = lambda: "a wire came loose"
        return launched

    desk.runtime.launch = launch  # type: ignore[method-assign]  # a stand-in
    desk.runtime.launched[-1].isActive = False
    return desk, query, replace(query, plan=query.plan + " ")


LEFT = [
    ("at_least_once", 0, False, "come once more in the new form"),
    ("exactly_once_v2", 1, False, "Nothing of it had been written"),
    ("exactly_once_v2", 2, True, "stays in the form of the old plan"),
]


@pytest.mark.parametrize(("guarantee", "mark", "allowed", "said"), LEFT)
def test_a_batch_that_fails_each_time_is_left_to_the_new_plan(
    tmp_path, query, guarantee, mark, allowed, said
):
    desk, old, new = stuck(tmp_path, query, guarantee, mark)
    switch = desk.runner.prepare_switch(old, new, half_written=allowed)
    assert said in switch.left
    assert "Batch 1" in switch.left
    assert (switch.batch, switch.offsets) == (0, {"s": {0: 3}})
    [(_, ranges, _)] = desk.runtime.tried
    assert ranges == (Range("s", 0, 3, 9),)  # the batch that it is to run is among them
    desk.runner.commit_switch(new)
    desk.runner.running[query.version].await_first_attempt(30)
    assert plan_of(desk.runtime.started[-1]) == new.plan


def test_a_batch_of_which_a_part_counts_is_not_left_without_a_word(tmp_path, query):
    desk, old, new = stuck(tmp_path, query, "exactly_once_v2", 2)
    with pytest.raises(BatchHalfWritten) as caught:
        desk.runner.prepare_switch(old, new)
    assert "The batch fails: a wire came loose" in caught.value.text()
    assert "SET 'ksql.query.replace.half.written.batch.enabled'='true'" in caught.value.text()
    assert all(plan_of(spec) == old.plan for spec in desk.runtime.started)


@pytest.mark.parametrize(("guarantee", "mark", "allowed", "said"), LEFT)
def test_a_batch_of_a_paused_query_is_left_alike(tmp_path, query, guarantee, mark, allowed, said):
    desk, old, _ = stuck(tmp_path, query, guarantee, mark)
    desk.runner.stop(query.version)
    assert said in desk.runner.check_replaceable(old, half_written=allowed)
    begun(desk.runner.checkpoint(query.version), 1, finished=True, offset=5)
    assert desk.runner.check_replaceable(old) == ""


def test_no_task_of_the_old_plan_writes_after_the_look_at_its_batch(tmp_path, query):
    """One that outlives the batch would commit rows in the old form after the answer."""
    desk, old, _ = stuck(tmp_path, query, "exactly_once_v2", 1)
    desk.runner.stop(query.version)
    place = desk.runner.checkpoint(query.version)
    right = LaunchRight(str(place), "of a batch that has failed")
    right.grant()
    desk.runner.check_replaceable(old)
    with pytest.raises(LaunchOver):
        right.check()


@pytest.fixture
def later(query):
    """A later version of the query."""
    return replace(query, version_number=7)


def test_two_versions_of_a_query_run_side_by_side(desk, query, later):
    for version in (query, later):
        desk.runner.start(version)
    first, second = desk.runtime.started
    assert (first.query_id, second.query_id) == (query.id, query.id)
    assert (first.name, second.name) == (query.id, f"{query.id}.v7")
    assert (first.checkpoint, second.checkpoint) == (
        desk.folder / query.id,
        desk.folder / f"{query.id}.v7",
    )
    assert first.application == f"{OWNER}{query.id}-life1"
    assert second.application == f"{OWNER}{query.id}-v7-life2"
    assert set(second.chain) == {query.id, f"{query.id}.v7"}
    assert set(desk.runner.running) == {query.version, later.version}


@pytest.mark.parametrize("ended", [0, 1])
def test_a_version_ends_alone(desk, query, later, ended):
    versions = [query, later]
    for version in versions:
        desk.runner.start(version)
    gone, left = versions[ended].version, versions[1 - ended].version
    running = desk.runner.running[left]
    application = desk.runner.application(left)
    desk.runner.stop_soon([gone])
    desk.runner.forget(gone)
    assert desk.runner.running == {left: running}
    assert running.status().state is State.RUNNING
    assert [path.name for path in desk.folder.iterdir()] == [left.name]
    assert desk.runner.application(left) == application
    [groups] = desk.ended
    assert not groups.fullmatch(f"{application}-0-0")
    assert desk.runtime.rested == desk.runtime.forgotten == [gone.name]


def test_what_is_known_of_a_query_is_one_of_its_versions(desk, query, later):
    for version in (query, later):
        desk.runner.start(version)
        desk.runner.stop(version.version)
    desk.runner.sweep([later.version])
    assert [path.name for path in desk.folder.iterdir()] == [later.version.name]
    desk.runner.resume([later])
    assert desk.application() == f"{OWNER}{query.id}-v7-life2"


def test_a_permit_to_begin_anew_counts_once_for_each_version(tmp_path, query, later):
    desk = Desk(tmp_path, start_over=frozenset({query.id}))
    desk.runner.resume([query])
    desk.runner.resume([later])
    assert [spec.incarnation for spec in desk.runtime.started] == ["life1", "life2"]
    for version in (query, later):
        desk.runner.stop(version.version)
        shutil.rmtree(desk.folder / version.version.name)
        desk.runner.resume([version])
        status = desk.runner.running[version.version].status()
        assert "is missing" in str(status.last_error)


def test_queries_end_at_the_same_time():
    """Each waits for the others here, so one after another they would not end in time."""
    together = threading.Barrier(12)
    queries = [
        SimpleNamespace(
            query_id=f"q{number}", stop=lambda timeout_s: together.wait(timeout_s + PATIENCE_S)
        )
        for number in range(12)
    ]
    stop_soon(queries, PATIENCE_S)
    assert not together.broken
