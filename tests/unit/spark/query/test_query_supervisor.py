"""A query that runs, rests, is held, or is over; Spark is a fake."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from ksql.core.errors import KsqlError
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.checkpoint import checkpoint_topics, incarnations
from ksql.spark.query.query_supervisor import QuerySupervisor
from ksql.spark.query.spec import QueryDriver, QuerySpec, RetryPolicy, State, Status
from ksql.spark.session.running import SparkRestarting
from tests.waits import PATIENCE_S


class Quiet:
    """A tally that counts nothing."""

    totals = None

    def begin(self, incarnation):
        pass

    def add(self, query):
        pass

    def update(self, query):
        pass


class Life:
    """One life of a query in Spark."""

    def __init__(self):
        self.isActive = True
        self.problem = None
        self.stop_fails = 0
        self.status = {"message": "Waiting for data to arrive"}

    def exception(self):
        return self.problem

    def fail(self, text):
        self.isActive, self.problem = False, text

    def stop(self):
        if self.stop_fails:
            self.stop_fails -= 1
            raise Py4JError("Stopping timed out")
        self.isActive = False


class Desk:
    """Makes queries, and says how each start goes."""

    def __init__(self, folder):
        self.folder = folder
        self.incarnations = []
        self.problems = []  # one per try, None for a start that succeeds
        self.logged = []
        self.finishes = True
        self.topics = {}

    def query(self):
        self.spec = QuerySpec(
            version=QueryVersion(QueryId("q")),
            plan_json="{}",
            topics=self.topics,
            checkpoint=self.folder,
        )
        driver = QueryDriver(
            self._now("prepare"), self._now("launch"), self.finish, vet=self._now("vet")
        )
        retry = RetryPolicy(initial_ms=0, max_ms=0)
        return QuerySupervisor(self.spec.place, driver, retry, Quiet(), self.note)

    def _now(self, name):
        """The step as a test has it by then."""

        def step(*arguments):
            return getattr(self, name)(*arguments)

        return step

    def vet(self, spec):
        return spec

    def note(self, version, failure):
        self.logged.append(failure.message)

    def prepare(self):
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        return self.spec

    def launch(self, spec):
        self.incarnations.append(Life())
        return self.incarnations[-1]

    def finish(self, incarnation, timeout_s):
        if self.finishes:
            incarnation.fail("stopped between two batches")
        return self.finishes

    def begun(self, batch):
        self._log("offsets", batch)

    def finished(self, batch):
        self._log("commits", batch)

    def _log(self, name, batch):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / str(batch)).write_text("v1\n{}\n{}")


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def supervised(query, state, timeout_s=10):
    """Let supervision work until the query is in that state."""
    end = time.monotonic() + timeout_s
    while query.status().state is not state and time.monotonic() < end:
        query.supervise()
        query.await_first_attempt(1)
    assert query.status().state is state
    return query.status()


def test_each_launch_has_an_id_of_its_own(desk):
    """Else tasks of a launch that has failed would write next to those of the following one."""
    query = desk.query()
    desk.spec = replace(desk.spec, launch="first")
    launched, usual = [], desk.launch

    def launch(spec):
        launched.append(spec.launch)
        return usual(spec)

    desk.launch = launch
    query.start()
    desk.incarnations[-1].fail("a batch failed")
    supervised(query, State.ERROR)
    supervised(query, State.RUNNING)
    assert launched[0] == "first"  # what was built ahead names it
    assert len(set(launched)) == 2


def test_one_whose_start_was_never_tried_is_tried_when_it_is_woken(desk):
    query = desk.query()
    query.supervise()
    assert desk.incarnations == []
    query.wake()
    supervised(query, State.RUNNING)
    query.supervise()
    query.await_first_attempt(1)
    assert len(desk.incarnations) == 1


class Unknown(KsqlError):
    """What Kafka says of a topic that is not there."""


PROBLEMS = [
    Unknown("Kafka topic does not exist: t"),
    Py4JError("An error occurred while calling o1.start"),
    RuntimeError("Kafka is slow"),
    OSError("no space left on device"),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: type(p).__name__)
def test_a_query_that_cannot_be_started_is_tried_until_it_can(desk, problem):
    desk.problems = [problem, problem]
    query = desk.query()
    query.start_soon()
    query.await_first_attempt(5)
    assert query.status().state is State.ERROR
    assert str(problem) in (query.status().last_error or "")
    supervised(query, State.RUNNING)
    assert desk.logged == [str(problem)] * 2
    assert len(desk.incarnations) == 1


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: type(p).__name__)
def test_a_restart_that_fails_rests_whatever_the_error(desk, problem):
    query = desk.query()
    query.start()
    desk.incarnations[0].fail("a wire came loose")
    desk.spec = None  # it is prepared once
    query._spec = None
    desk.problems = [problem]
    desk.spec = QuerySpec(
        version=QueryVersion(QueryId("q")), plan_json="{}", topics={}, checkpoint=desk.folder
    )
    query.supervise()
    assert query.status().last_error == "a wire came loose"
    supervised(query, State.RUNNING)
    assert desk.logged == ["a wire came loose", str(problem)]


def test_a_first_start_that_fails_is_reported_and_not_tried_again(desk):
    desk.problems = [OSError("disk")]
    query = desk.query()
    with pytest.raises(OSError, match="disk"):
        query.start()
    query.supervise()
    assert desk.incarnations == []


def test_a_slow_start_holds_up_neither_its_watch_nor_its_status(desk):
    gate = threading.Event()
    desk.launch = lambda spec: gate.wait(10) and Life()
    query = desk.query()
    query.start_soon()
    query.supervise()
    assert query.status().state is State.RUNNING
    gate.set()
    query.await_first_attempt(10)
    assert query.status().state is State.RUNNING


def test_a_query_that_waits_for_its_first_start_has_not_failed_and_has_not_started(desk):
    desk.begun(0)
    desk.finished(0)  # before the server restarted
    gate = threading.Event()
    desk.problems = [OSError("disk")]
    prepare = desk.prepare
    desk.prepare = lambda: gate.wait(10) and prepare()
    query = desk.query()
    assert query.status() == Status(State.RUNNING, ())
    query.start_soon()
    assert query.status() == Status(State.RUNNING, ())
    assert not query.has_started()
    gate.set()
    query.await_first_attempt(10)
    assert query.status().state is State.ERROR
    assert query.status().last_error == "disk"
    assert query.has_started()


def test_a_query_stopped_while_it_starts_does_not_live_on(desk):
    gate, incarnation = threading.Event(), Life()
    desk.launch = lambda spec: gate.wait(10) and incarnation
    query = desk.query()
    query.start_soon()
    query.stop(timeout_s=0.01)
    gate.set()
    query.await_first_attempt(10)
    assert not incarnation.isActive
    assert query.status().state is State.STOPPED


def test_a_query_that_was_requested_to_end_and_then_kept_continues_behind_its_batch(desk):
    query = desk.query()
    query.start()
    query.lock_start()
    desk.finishes = False
    assert not query.end_between_batches(0.01)
    query.resume()
    assert desk.incarnations[0].isActive
    assert len(desk.incarnations) == 1
    desk.incarnations[0].fail("stopped between two batches")  # its batch has ended
    supervised(query, State.RUNNING)
    query.supervise()
    query.await_first_attempt(5)
    assert len(desk.incarnations) == 2
    assert desk.logged == []
    assert query.status().failures == ()


def test_nobody_starts_a_query_that_a_switch_holds(desk):
    query = desk.query()
    query.start()
    query.lock_start()
    assert query.end_between_batches(1)
    query.supervise()
    query.start_soon()
    query.await_first_attempt(1)
    assert len(desk.incarnations) == 1
    assert query.status().state is State.RUNNING  # it is being replaced
    query.resume()
    assert len(desk.incarnations) == 2


def test_a_half_done_batch_is_finished_by_another_incarnation(desk):
    query = desk.query()
    query.start()
    desk.begun(0)
    desk.incarnations[0].fail("a wire came loose")
    query.lock_start()
    assert query.end_between_batches(1)
    assert query.half_done()
    desk.launch = lambda spec: desk.finished(0) or Life()
    assert query.finish_batch(5)
    assert not query.half_done()


def test_a_half_done_batch_that_fails_again_is_reported(desk):
    query = desk.query()
    query.start()
    desk.begun(0)
    desk.incarnations[0].fail("a wire came loose")
    query.lock_start()

    def launch(spec):
        incarnation = Life()
        incarnation.fail("again")
        return incarnation

    desk.launch = launch
    assert not query.finish_batch(5)
    assert query.problem() == "again"


def test_a_batch_that_goes_with_sparks_process_is_not_one_that_fails(desk):
    query = desk.query()
    query.start()
    desk.begun(0)
    desk.incarnations[0].fail("a wire came loose")
    query.lock_start()

    def launch(spec):
        incarnation = Life()
        incarnation.fail("")
        incarnation.exception = lambda: SparkRestarting("SIGKILL")  # type: ignore[method-assign]
        return incarnation

    desk.launch = launch
    with pytest.raises(SparkRestarting):
        query.finish_batch(5)


def test_query_that_survives_its_stop_is_stopped_again(desk, monkeypatch):
    monkeypatch.setattr("ksql.spark.query.query_supervisor._STOP_AGAIN_S", 0.0)
    query = desk.query()
    query.start()
    desk.finishes = False
    desk.incarnations[0].stop_fails = 1
    query.stop(timeout_s=0.01)
    assert not query.stopped
    end = time.monotonic() + 10
    while not query.stopped and time.monotonic() < end:
        query.supervise()
    assert query.stopped
    assert not desk.incarnations[0].isActive


# --- threads that cannot be started, and those that end by what is no Exception


@pytest.fixture
def threads(monkeypatch):
    """Whether threads can be started; the limit is that of the machine."""
    start, limit = threading.Thread.start, threading.Event()

    def limited(thread):
        if limit.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    return limit


def test_a_start_that_gets_no_thread_has_failed_and_is_tried_again(desk, threads):
    query = desk.query()
    threads.set()
    query.start_soon()
    assert query.status().state is State.ERROR
    assert query.await_first_attempt(0)
    query.supervise()
    assert desk.logged == ["can't start new thread"] * 2
    threads.clear()
    supervised(query, State.RUNNING)
    assert len(desk.incarnations) == 1


@pytest.mark.parametrize("problem", [SystemExit(3), GeneratorExit("bare")])
def test_a_start_that_no_exception_ends_has_failed_and_is_tried_again(desk, problem):
    desk.problems = [problem]
    query = desk.query()
    query.start_soon()
    assert query.await_first_attempt(10)
    assert query.status().state is State.ERROR
    supervised(query, State.RUNNING)
    assert desk.logged == [str(problem)]


def test_a_query_that_gets_no_thread_to_be_ended_in_runs_and_is_ended_at_the_next_look(
    desk, threads
):
    query = desk.query()
    query.start()
    threads.set()
    query.fail_with(Unknown("topic t was deleted"), query.reads())
    assert query.status().state is State.RUNNING
    assert query.await_first_attempt(0)
    desk.incarnations[0].fail("a batch failed")
    query.supervise()  # nothing hides that
    assert desk.logged == ["a batch failed"]


def test_a_stop_that_gets_no_thread_is_tried_again(desk, threads, monkeypatch):
    monkeypatch.setattr("ksql.spark.query.query_supervisor._STOP_AGAIN_S", 0.0)
    query = desk.query()
    query.start()
    desk.finishes = False
    desk.incarnations[0].stop_fails = 1
    query.stop(timeout_s=0.01)
    threads.set()
    query.supervise()
    assert not query.stopped
    threads.clear()
    end = time.monotonic() + PATIENCE_S
    while not query.stopped and time.monotonic() < end:
        query.supervise()
    assert query.stopped


# --- topics that are not what it began with


def test_a_start_that_the_stop_of_the_service_cuts_off_is_no_failure(desk):
    begun, go = threading.Event(), threading.Event()

    def launch(_spec):
        begun.set()
        assert go.wait(PATIENCE_S)
        raise SparkRestarting("ended by signal 9")

    desk.launch = launch
    query = desk.query()
    query.start_soon()
    assert begun.wait(PATIENCE_S)
    query.disable()
    go.set()
    query.await_first_attempt(PATIENCE_S)
    assert desk.logged == []
    assert query.status() == Status(State.STOPPED, ())


def ended(query):
    query.await_first_attempt(5)
    return query.status()


def test_a_query_whose_topic_is_another_ends_at_once_and_says_why(desk):
    query = desk.query()
    query.start()
    desk.finished(0)
    query.fail_with(Unknown("topic t was deleted", hint="TERMINATE q"), query.reads())
    status = ended(query)
    assert not desk.incarnations[0].isActive
    assert status.state is State.ERROR
    assert desk.logged == [status.last_error]
    assert "TERMINATE q" in status.last_error
    supervised(query, State.RUNNING)
    assert len(desk.incarnations) == 2


def test_it_is_not_tried_again_as_long_as_spark_has_not_ended_it(desk):
    query = desk.query()
    query.start()
    desk.incarnations[0].stop_fails = 1
    query.fail_with(Unknown("topic t was deleted"), query.reads())
    assert ended(query).state is State.RUNNING
    query.supervise()
    assert len(desk.incarnations) == 1
    query.fail_with(Unknown("topic t was deleted"), query.reads())
    assert ended(query).state is State.ERROR


@pytest.mark.parametrize("way", ["rests", "held", "stopped"])
def test_stopped_query_reads_nothing_and_is_not_ended(desk, way):
    desk.topics = {"t": "earliest"}
    query = desk.query()
    assert query.reads() == {}
    query.start()
    ids = query.reads()
    assert ids == {"t": ""}
    {
        "rests": lambda: desk.incarnations[0].fail("x"),
        "held": query.lock_start,
        "stopped": query.stop,
    }[way]()
    assert query.reads() == {}
    before = desk.logged[:]
    query.fail_with(Unknown("topic t was deleted"), ids)
    ended(query)
    assert desk.logged == before
    assert desk.incarnations[0].isActive == (way == "held")


def test_it_names_the_topic_that_it_writes_while_it_runs(desk):
    query = desk.query()
    desk.spec = replace(desk.spec, sink_topic="out")
    assert query.writes() == ""
    query.start()
    assert query.writes() == "out"
    desk.incarnations[0].fail("x")
    assert query.writes() == ""


def test_it_knows_the_ids_of_its_launch(desk):
    desk.topics = {"t": "earliest", "u": "earliest"}
    checkpoint_topics.write(desk.folder, {"t": "first", "v": "other"})
    query = desk.query()
    query.start()
    checkpoint_topics.write(desk.folder, {"t": "second"})
    assert query.reads() == {"t": "first", "u": ""}


def test_a_checkpoint_that_is_removed_under_it_is_noticed(desk):
    query = desk.query()
    desk.spec = replace(desk.spec, incarnation="f00d")
    incarnations.begin(desk.folder, "f00d")
    assert query.lost() is None
    query.start()
    assert query.lost() is None
    (desk.folder / "life.json").unlink()
    desk.begun(7)  # Spark goes on writing
    missing = query.lost()
    assert isinstance(missing, incarnations.CheckpointMissing)
    query.fail_with(missing, query.reads())
    assert "is missing" in (ended(query).last_error or "")
    assert query.lost() is None


def test_a_checkpoint_that_cannot_be_looked_at_is_not_gone(desk, monkeypatch):
    query = desk.query()
    desk.spec = replace(desk.spec, incarnation="f00d")
    incarnations.begin(desk.folder, "f00d")
    query.start()

    def read_text(_path, **_options):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_text", read_text)
        assert query.lost() is None
    (desk.folder / "life.json").unlink()
    assert isinstance(query.lost(), incarnations.CheckpointMissing)


def test_findings_of_a_former_launch_do_not_end_the_next(desk):
    desk.topics = {"t": "earliest"}
    query = desk.query()
    query.start()
    former = query.reads()
    desk.incarnations[0].fail("a wire came loose")
    supervised(query, State.RUNNING)
    query.fail_with(Unknown("topic t was deleted"), former)
    assert ended(query).state is State.RUNNING
    assert desk.incarnations[1].isActive
    assert query.reads() == former


def test_refused_launch_is_prepared_again(desk):
    query = desk.query()
    vetted = []

    def vet(spec):
        vetted.append(spec.incarnation)
        if len(vetted) == 1:
            desk.spec = replace(spec, incarnation="second")
            raise OSError("after another life has begun")
        return spec

    desk.vet = vet
    query.start_soon()
    assert ended(query).state is State.ERROR
    supervised(query, State.RUNNING)
    assert vetted == [None, "second"]


# --- the size of its batches


class Sized(Quiet):
    record_bytes = 0.0


def test_its_batches_are_bound_again_when_their_records_change_much(desk):
    bound = []
    desk.query()
    spec = replace(desk.spec, max_records=1000, max_bytes=10_000, first_records=100)
    metrics = Sized()
    driver = QueryDriver(
        lambda: spec, desk.launch, desk.finish, lambda _query, most: bound.append(most)
    )
    query = QuerySupervisor(spec.place, driver, RetryPolicy(), metrics, desk.note)
    query.start()
    for size in (0.0, 100.0, 120.0, 1000.0, 900.0, 1.0, 20_000.0):
        metrics.record_bytes = size
        query.supervise()
    assert bound == [10, 1000, 1]


def test_a_query_that_failed_is_launched_with_the_bound_that_it_had(desk):
    """What has come meanwhile is as large as what came before; the first launch found nothing."""
    launched = []
    desk.query()
    spec = replace(desk.spec, max_records=1000, max_bytes=10_000)
    metrics = Sized()

    def launch(spec):
        launched.append(spec.first_records)
        return desk.launch(spec)

    driver = QueryDriver(lambda: spec, launch, desk.finish)
    retry = RetryPolicy(initial_ms=0, max_ms=0)
    query = QuerySupervisor(spec.place, driver, retry, metrics, desk.note)
    query.start()
    metrics.record_bytes = 100.0
    query.supervise()
    desk.incarnations[-1].fail("the broker went away")
    while len(launched) < 2:
        query.supervise()
        query.await_first_attempt(1)
    assert launched == [None, 100]


def test_a_checkpoint_that_loses_its_files_has_no_offsets(desk, tmp_path):
    """Somebody deletes the directory while an operator describes the query."""
    running = desk.query()
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "1").write_text("v1\n{}", "utf-8")
    assert running.committed_offsets() == {}
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "1").write_text('v1\n{}\n{"t":{"0":7}}', "utf-8")
    assert running.committed_offsets() == {"t": {0: 7}}
    (tmp_path / "offsets" / "1").write_text("", "utf-8")
    assert running.committed_offsets() == {}


def test_a_start_that_writes_still_is_no_end(tmp_path, monkeypatch):
    """It may complete a cut-over: nobody else may write the result's topic meanwhile."""
    monkeypatch.setattr("ksql.spark.query.query_supervisor.STOP_S", 0.01)
    desk, begun, over = Desk(tmp_path), threading.Event(), threading.Event()

    def slow(spec):
        begun.set()
        assert over.wait(PATIENCE_S)
        return spec

    desk.vet = slow  # type: ignore[method-assign]
    query = desk.query()
    query.start_soon()
    assert begun.wait(PATIENCE_S)
    query.lock_start()
    assert not query.end_between_batches(0.01)
    assert not query.interrupt()
    over.set()
    assert query.end_between_batches(PATIENCE_S)
    assert query.interrupt()
    query.retire()
