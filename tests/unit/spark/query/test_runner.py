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

from ksql.control.engine.memory import MemoryLog
from ksql.core.config import Settings
from ksql.core.error_table import CHECKPOINT_UNUSABLE
from ksql.core.process.lease import Lease, NotLeader
from ksql.core.structs import Structs
from ksql.core.trash import Trash
from ksql.kafka.ranges import Range
from ksql.spark.checkpoint import incarnations
from ksql.spark.query.batch_limits import BatchLimits
from ksql.spark.query.compile import task_environment
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.query_supervisor import QueryDriver, QuerySupervisor
from ksql.spark.query.runner import SparkRunner
from ksql.spark.query.runner_context import RunnerContext
from ksql.spark.query.spec import RetryPolicy, State
from ksql.spark.query.switching import BatchHalfWritten, SwitchRefused
from ksql.spark.session.runtime import SparkRuntime
from ksql.spark.task.trial_task import TrialFailed
from ksql.sql.catalog.forms import FORMS
from tests.unit.world import World

OWNER = "_confluent-ksql-default_query_"


class Spark:
    """Starts nothing; writes what Spark writes first."""

    def __init__(self):
        self.started = []
        self.tried = []
        self.forgotten = []
        self.rested = []

    def launch(self, spec):
        self.started.append(spec)
        (spec.checkpoint / "metadata").write_text("{}")
        return SimpleNamespace(isActive=True, stop=lambda: None, exception=lambda: None)

    def host(self, place, prepare, on_failure, vet):
        driver = QueryDriver(prepare, self.launch, lambda _query, _timeout: True, vet=vet)
        return QuerySupervisor(place, driver, RetryPolicy(), Still(), on_failure)

    def watch(self, _query):
        pass

    def try_out(self, spec, ranges, limit_s):
        self.tried.append((spec, ranges, limit_s))

    def forget(self, name):
        self.forgotten.append(name)

    def rest(self, name):
        self.rested.append(name)

    begin = SparkRuntime.begin


class Still:
    """Counts nothing."""

    def begin(self, _incarnation):
        pass

    def add(self, _query):
        pass


class Desk:
    def __init__(self, folder, preflight=None, settings=None, **context):
        self.folder = folder / "queries"
        self.trash = Trash(folder / "aside", lambda: 0)
        self.runtime = Spark()
        self.ended: list[Any] = []
        names = count(1)
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
            new_incarnation=lambda: f"life{next(names)}",
            end_groups=self.ended.append,
            preflight=preflight or Preflight(),
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


def test_a_query_that_begins_has_a_life_before_it_starts(desk, query):
    desk.runner.start(query)
    assert desk.application() == f"{OWNER}{query.id}-life1"
    assert desk.runtime.started[0].incarnation == "life1"


def test_one_that_is_stopped_and_started_goes_on_with_its_life(desk, query):
    desk.runner.start(query)
    desk.runner.stop(query.id)
    assert desk.runner.application(query.id) == f"{OWNER}{query.id}-life1"
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


def test_an_id_that_comes_again_has_another_life(desk, query):
    for expected in ("life1", "life2"):
        desk.runner.start(query)
        assert desk.application().endswith(f"-{expected}")
        desk.runner.stop(query.id)
        desk.runner.forget(query.id)
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
    status = desk.runner.running[query.id].status()
    assert status.state is State.ERROR
    assert f"the checkpoint of query {query.id} is missing" in status.last_error
    assert f"ksql.state.anew={query.id}" in status.last_error
    assert desk.runtime.started == []
    assert not desk.folder.exists()


@pytest.mark.parametrize("anew", ["all", "this"])
def test_it_begins_anew_when_it_is_told_to(tmp_path, query, anew, caplog):
    desk = Desk(tmp_path, anew=frozenset({query.id if anew == "this" else anew}))
    desk.runner.resume([query])
    assert desk.application().endswith("-life1")
    assert "query_begins_anew" in [record.message for record in caplog.records]


def test_it_begins_anew_once_in_a_start_of_the_server(tmp_path, query):
    desk = Desk(tmp_path, anew=frozenset({query.id}))
    desk.runner.resume([query])
    desk.runner.stop(query.id)
    shutil.rmtree(desk.runner.checkpoint(query.id))
    desk.runner.resume([query])
    assert "is missing" in str(desk.runner.running[query.id].status().last_error)
    assert [spec.incarnation for spec in desk.runtime.started] == ["life1"]


def test_a_query_whose_checkpoint_fits_has_no_permit_any_more(tmp_path, query):
    Desk(tmp_path).runner.start(query)
    desk = Desk(tmp_path, anew=frozenset({"all"}))
    desk.runner.resume([query])
    desk.runner.stop(query.id)
    shutil.rmtree(desk.runner.checkpoint(query.id))
    desk.runner.resume([query])
    assert "is missing" in str(desk.runner.running[query.id].status().last_error)
    assert len(desk.runtime.started) == 1


def test_another_one_does_not(tmp_path, query):
    desk = Desk(tmp_path, anew=frozenset({"OTHER"}))
    desk.runner.resume([query])
    assert desk.runner.running[query.id].status().state is State.ERROR
    assert desk.runtime.started == []


def test_what_no_query_knows_is_moved_aside(desk, query):
    desk.runner.start(query)
    incarnations.begin(desk.folder / "CTAS_GONE_9", "x")
    (desk.folder / "EMPTY").mkdir()
    desk.runner.sweep([query.id])
    assert [path.name for path in desk.folder.iterdir()] == [query.id]
    assert [moved.name.split("-")[-1] for moved in desk.trash.entries()] == ["CTAS_GONE_9"]


@pytest.mark.parametrize("letters", [120, 200, 255])
def test_a_long_name_is_moved_aside_as_well(desk, letters):
    names = ["A" * (letters - 1) + last for last in "XY"]
    for name in names:
        incarnations.begin(desk.folder / name, "x")
    desk.runner.sweep([])
    assert list(desk.folder.iterdir()) == []
    found = desk.trash.entries()
    assert sorted(moved.origin for moved in found) == [str(desk.folder / name) for name in names]
    for moved in found:
        assert incarnations.incarnation_of(
            moved.entry / Path(moved.origin).name
        ) == incarnations.Incarnation("x")


def test_what_cannot_be_moved_does_not_keep_the_server_from_starting(desk, monkeypatch, caplog):
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


def test_a_directory_that_cannot_be_written_is_told_as_an_error(desk, query):
    desk.folder.parent.mkdir(exist_ok=True)
    desk.folder.write_text("a file is in the way")
    with pytest.raises(CHECKPOINT_UNUSABLE.base, match=CHECKPOINT_UNUSABLE.pattern):
        desk.runner.start(query)


def test_a_damaged_life_is_forgotten_all_the_same(desk, query):
    desk.runner.start(query)
    (desk.folder / query.id / "life.json").write_text("{")
    desk.runner.stop(query.id)
    assert desk.runner.application(query.id) == f"{OWNER}{query.id}"
    desk.runner.forget(query.id)
    assert not (desk.folder / query.id).exists()
    assert desk.ended == []


def test_a_query_that_stops_is_no_longer_about_to_run(desk, query):
    desk.runner.start(query)
    [(name, link)] = desk.runtime.started[-1].chain.items()
    assert link.begun > 0
    assert not link.exactly_once
    desk.runner.stop(query.id)
    assert desk.runtime.rested == [name]
    assert desk.runner._links.all[name].begun == 0
    desk.runner.resume([query])
    assert desk.runner._links.all[name].begun > link.begun
    desk.runner.forget(query.id)
    assert desk.runner._links.all == {}


# --- a server of an earlier version that died in a switch


def killed_in_a_trial(desk, query, *, half_done):
    """The new plan was tried, on the checkpoint itself, and its command is not in the log."""
    desk.runner.start(query)
    place = desk.runner.checkpoint(query.id)
    tried = Structs(FORMS).plain(replace(query, plan=query.plan + " ", statement="new"))
    (place / "trial.json").write_text(json.dumps({"version": 1, "query": tried}))
    (place / "offsets").mkdir()
    (place / "offsets" / "0").write_text("v1\n{}\n{}")
    if not half_done:
        finish_batches(place)
    desk.runner.running.clear()  # the crash
    return place


def plan_of(spec):
    return json.loads(spec.plan_json)["plan"]


def finish_batches(place):
    (place / "commits").mkdir(exist_ok=True)
    (place / "commits" / "0").write_text("v1\n{}")


def test_a_batch_that_a_trial_left_half_done_is_finished_by_the_plan_that_was_tried(desk, query):
    place = killed_in_a_trial(desk, query, half_done=True)
    usual = desk.runtime.launch

    def launch(spec):
        finish_batches(place)
        return usual(spec)

    desk.runtime.launch = launch
    again = Desk(desk.folder.parent)
    again.runtime.launch = launch  # type: ignore[method-assign]  # a stand-in
    again.runner.resume([query])
    plans = [plan_of(spec) for spec in desk.runtime.started]
    assert plans == [query.plan, query.plan + " ", query.plan]
    again.runner.stop(query.id)
    again.runner.resume([query])
    assert [plan_of(spec) for spec in desk.runtime.started[3:]] == [query.plan]


def test_a_trial_that_left_nothing_half_done_is_over(desk, query):
    place = killed_in_a_trial(desk, query, half_done=False)
    desk.runner.resume([query])
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan] * 2
    assert not (place / "trial.json").exists()


def test_a_tried_plan_that_counts_just_goes_on(desk, query):
    killed_in_a_trial(desk, query, half_done=True)
    desk.runner.resume([replace(query, plan=query.plan + " ")])
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan, query.plan + " "]


def test_a_tried_plan_that_cannot_finish_its_batch_gives_way(desk, query, caplog):
    killed_in_a_trial(desk, query, half_done=True)
    usual = desk.runtime.launch

    def launch(spec):
        if plan_of(spec).endswith(" "):
            raise RuntimeError("odd")
        return usual(spec)

    desk.runtime.launch = launch
    desk.runner.resume([query])
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan] * 2
    assert "batch_not_finished" in caplog.text


def test_a_damaged_trial_is_an_error_of_its_query(desk, query):
    place = killed_in_a_trial(desk, query, half_done=True)
    (place / "trial.json").write_text('{"version": 99}')
    desk.runner.resume([query])
    status = desk.runner.running[query.id].status()
    assert status.state is State.ERROR
    assert "version 99" in (status.last_error or "")


def test_a_server_that_is_no_longer_in_charge_ends_its_queries_and_starts_none(desk, query):
    desk.runner.start(query)
    desk.runner.abandon("Another server has taken over.")
    running = desk.runner.running[query.id]
    deadline = time.monotonic() + 10
    while not running.stopped:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(NotLeader):
        desk.runner.start(replace(query, id="CSAS_P_2"))
    assert len(desk.runtime.started) == 1


@pytest.mark.parametrize(("said", "read"), [("spark", False), ("workers", True)])
def test_the_workers_read_where_the_server_is_set_so(tmp_path, query, said, read):
    settings = {"ksql.spark.source.reader": said}
    desk = Desk(tmp_path, settings=settings, reader={"bootstrap.servers": "b:1"})
    desk.runner.start(query)
    found = desk.runtime.started[0].reader
    assert found == ({"bootstrap.servers": "b:1"} if read else None)


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
def test_a_batch_that_does_not_end_holds_up_nobody(desk, text, ended):
    """They are stopped together, each within seconds; then another client's statement is done."""
    desk.runtime = desk.runner._runtime = Endless(ended)
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    world.run(text)
    assert len(desk.runtime.waited) == len(desk.runtime.interrupted) == ended
    assert all(0 < waited <= 5 for waited in desk.runtime.waited)
    with ThreadPoolExecutor(1) as other:
        other.submit(world.run, "CREATE STREAM X AS SELECT K, A FROM S;").result(30)
    assert "X" in world.catalog.sources
    assert (desk.folder / "CSAS_O_1").exists() == text.startswith("PAUSE")


def test_a_paused_query_repeats_its_batch(desk):
    desk.runtime = desk.runner._runtime = Endless()
    world = World(STREAMS, runner=lambda _topics: desk.runner)
    world.run("PAUSE CSAS_O_1;")
    before = desk.application()
    world.run("RESUME CSAS_O_1;")
    again = desk.runtime.started[-1]
    assert (again.query_id, len(desk.runtime.started)) == ("CSAS_O_1", 3)
    assert again.application == before.replace("CSAS_P_2-life2", "CSAS_O_1-life1")


def test_a_query_that_takes_long_to_go_on_holds_up_nobody(desk):
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
    assert desk.runner.running["CSAS_O_1"].status().state is State.RUNNING


def test_a_replacement_that_is_taken_back_still_waits_for_its_batch(desk, query):
    desk.runtime = desk.runner._runtime = Endless()
    desk.runner.start(query)
    desk.runner.stop(query.id)
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
def test_a_switch_that_waits_for_its_batch_holds_up_nobody_and_is_ended_with_its_query(desk, text):
    desk.runtime = desk.runner._runtime = Switching()
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
    assert "CSAS_O_1" not in desk.runner.running
    assert world.catalog.types.keys() == {"T"}
    if text.startswith("PAUSE"):
        assert replace(before, paused=True) == world.query("O")
        world.run("RESUME CSAS_O_1;")
        assert desk.runtime.started[-1].plan_json == desk.runtime.started[0].plan_json
    else:
        assert not (desk.folder / "CSAS_O_1").exists()


def test_a_server_that_ends_ends_the_switch_as_well(desk):
    desk.runtime = desk.runner._runtime = Switching()
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
        super().__init__(folder, preflight, reader={"bootstrap.servers": "b:1"})
        self.runner._bounds = bounds


def test_a_plan_is_tried_over_what_its_query_has_not_begun_to_read(tmp_path, query):
    desk = Waiting(tmp_path)
    desk.runner.start(query)
    begun(desk.runner.checkpoint(query.id), 0, finished=True, offset=3)
    desk.runner.make_way(query, replace(query, plan=query.plan + " "))
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
        desk.runner.make_way(query, replace(query, plan=query.plan + " "))
    assert "it overruns" in caught.value.text()
    assert "goes on unchanged" in caught.value.text()
    assert len(desk.runtime.started) == 1
    assert desk.runner.running[query.id].status().state is State.RUNNING


def test_a_plan_that_is_taken_runs_from_then_on(desk, query):
    desk.runner.start(query)
    new = replace(query, plan=query.plan + " ")
    desk.runner.make_way(query, new)
    assert len(desk.runtime.started) == 1
    desk.runner.take_over(new)
    desk.runner.running[query.id].await_first_attempt(30)
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan, new.plan]
    assert not (desk.runner.checkpoint(query.id) / "trial.json").exists()


def test_a_plan_that_is_not_taken_leaves_the_old_one(desk, query):
    desk.runner.start(query)
    going = desk.runner.running[query.id]
    desk.runner.make_way(query, replace(query, plan=query.plan + " "))
    going._query.isActive = False
    desk.runner.give_back(query)
    assert desk.runner.running[query.id] is going
    assert [plan_of(spec) for spec in desk.runtime.started] == [query.plan] * 2


def stuck(tmp_path, query, guarantee, mark):
    """A query whose batch 1 fails each time; Kafka holds batches of its groups up to ``mark``."""
    marks = [0]
    desk = Waiting(tmp_path, Preflight(marks=lambda _names: marks[0]))
    query = replace(query, plan=query.plan.replace("at_least_once", guarantee))
    desk.runner.start(query)
    place = desk.runner.checkpoint(query.id)
    begun(place, 0, finished=True, offset=3)
    begun(place, 1, finished=False, offset=5)
    marks[0] = mark
    usual = desk.runtime.launch

    def launch(spec):
        found = usual(spec)
        if plan_of(spec) == query.plan:
            found.isActive = False
            found.exception = lambda: "a wire came loose"
        return found

    desk.runtime.launch = launch  # type: ignore[method-assign]  # a stand-in
    desk.runner.running[query.id]._query.isActive = False
    desk.runner.running[query.id]._driver = replace(
        desk.runner.running[query.id]._driver, launch=launch
    )
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
    switch = desk.runner.make_way(old, new, half_written=allowed)
    assert said in switch.left
    assert "Batch 1" in switch.left
    assert (switch.batch, switch.offsets) == (0, {"s": {0: 3}})
    [(_, ranges, _)] = desk.runtime.tried
    assert ranges == (Range("s", 0, 3, 9),)  # the batch that it is to run is among them
    desk.runner.take_over(new)
    desk.runner.running[query.id].await_first_attempt(30)
    assert plan_of(desk.runtime.started[-1]) == new.plan


def test_a_batch_of_which_a_part_counts_is_not_left_without_a_word(tmp_path, query):
    desk, old, new = stuck(tmp_path, query, "exactly_once_v2", 2)
    with pytest.raises(BatchHalfWritten) as caught:
        desk.runner.make_way(old, new)
    assert "The batch fails: a wire came loose" in caught.value.text()
    assert "SET 'ksql.query.replace.half.written.batch.enabled'='true'" in caught.value.text()
    assert all(plan_of(spec) == old.plan for spec in desk.runtime.started)


@pytest.mark.parametrize(("guarantee", "mark", "allowed", "said"), LEFT)
def test_a_batch_of_a_paused_query_is_left_alike(tmp_path, query, guarantee, mark, allowed, said):
    desk, old, _ = stuck(tmp_path, query, guarantee, mark)
    desk.runner.stop(query.id)
    assert said in desk.runner.check_replaceable(old, half_written=allowed)
    begun(desk.runner.checkpoint(query.id), 1, finished=True, offset=5)
    assert desk.runner.check_replaceable(old) == ""
