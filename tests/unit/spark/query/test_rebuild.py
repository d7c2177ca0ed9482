"""A runner's part in a rebuild: how candidates are launched, and what ends an offset sync."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.control.engine.rebuild_progress import percent
from ksql.core import ROWS_LOST, KsqlError
from ksql.kafka.errors import UnknownTopic
from ksql.kafka.topic_difference import Counts, Equalized
from ksql.spark.checkpoint import checkpoint, cut_over_mark
from ksql.spark.query.cut_over import CutOverCompletion
from ksql.spark.query.offset_sync import OffsetsNotReached, OffsetSyncFailed
from ksql.spark.query.query_metrics import QueryMetrics
from ksql.spark.query.query_supervisor import QuerySupervisor
from ksql.spark.query.spec import QueryDriver, RetryPolicy, State
from ksql.spark.task.kept_state import KeptState
from ksql.sql.catalog.model import CutOver
from ksql.sql.plan import codec
from tests.unit.spark.query.test_runner import Desk, Spark
from tests.unit.world import World
from tests.waits import PATIENCE_S, await_true

RATE = "ksql.upgrade.rebuild.max.records.per.second"
TIMEOUT = {"ksql.query.replace.timeout.ms": "500"}


class Reading(Spark):
    """Each launch reads up to where it may; ``ends`` is where the topic ends."""

    def __init__(self, ends=10):
        super().__init__()
        self.ends = ends
        self.before_batch = lambda _spec: None

    def launch(self, spec):
        self.before_batch(spec)
        launched = super().launch(spec)
        launched._jsq = SimpleNamespace(lastProgress=lambda: "{}")
        commit(spec.checkpoint, self.ends if spec.until is None else spec.until["s"][0])
        return launched

    def end_at(self, name, offsets):
        """One that runs with an end reads on."""
        for spec, launched in zip(self.started, self.launched, strict=True):
            if spec.name == name and spec.until is not None and launched.isActive and offsets:
                commit(spec.checkpoint, offsets["s"][0])

    def finish(self, query, _timeout_s):
        query.isActive = False
        return True

    def host(self, place, prepare, on_failure, vet):
        driver = QueryDriver(prepare, self.launch_now, self.finish, vet=vet)
        return QuerySupervisor(place, driver, RetryPolicy(), Counting(), on_failure)


class Counting(QueryMetrics):
    """Counts nothing, as Spark reports nothing."""

    def add(self, _query):
        pass


def commit(checkpoint, offset):
    """Write what Spark writes of a batch that ends there."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(exist_ok=True)
    batch = len(list((checkpoint / "commits").iterdir()))
    offsets = json.dumps({"s": {"0": offset}})
    (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offsets}")
    (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


@pytest.fixture(scope="module")
def old():
    world = World(
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM O AS SELECT K, A FROM S;",
        log=MemoryLog(),
    )
    return next(iter(world.engine.catalog.queries.values()))


@pytest.fixture(scope="module")
def new(old):
    return replace(old, version_number=7, cut_over=CutOver(7, 0))


@pytest.fixture(scope="module")
def candidate(new):
    plan = codec.loads(new.plan)
    sink = replace(plan.sink, topic=new.version.results_topic("default_"))
    return replace(new, plan=codec.dumps(replace(plan, sink=sink)), cut_over=None)


@pytest.fixture
def desk(tmp_path, old, candidate):
    desk = Desk(tmp_path, runtime=Reading(), settings=TIMEOUT)
    desk.runner.start(old)
    desk.runtime.ends = 14
    desk.runner.start(candidate)
    return desk


def ends_of(desk):
    return [(spec.version.number, spec.until) for spec in desk.runtime.started]


def run_on(desk, query, offset):
    commit(desk.runner.checkpoint(query.version), offset)


@pytest.mark.parametrize(("rate", "bound"), [("0", None), ("700", 700), ("9000000", None)])
def test_a_candidate_has_its_share(tmp_path, old, candidate, rate, bound):
    settings = {RATE: rate, "ksql.query.max.records.per.batch": "500000"}
    desk = Desk(tmp_path, settings=settings)
    desk.runner.start(old)
    desk.runner.start(candidate)
    running, built = desk.runtime.started
    assert (running.trigger_ms, running.max_records) == (100, 500_000)
    expected = (100 if rate == "0" else 1_000, bound or 500_000)
    assert (built.trigger_ms, built.max_records) == expected
    assert running.weight > built.weight > 0


def test_the_candidate_ends_where_the_other_one_has(desk, old, candidate, new):
    run_on(desk, old, 20)
    switch = desk.runner.stop_at_same_offsets(old, candidate)
    assert switch.offsets == {"s": {0: 20}}
    assert ends_of(desk) == [(0, None), (7, None), (7, {"s": {0: 14}})]
    first = desk.runner.cut_over(old, new)
    assert first(PATIENCE_S).problem == ""
    assert ends_of(desk)[3:] == [(7, None)]
    launch = desk.runtime.started[-1]
    assert launch.sink_topic == "O"
    assert launch.incarnation == desk.runtime.started[1].incarnation
    assert launch.application == desk.runtime.started[1].application
    assert list(desk.runner.running) == [new.version]
    assert [(link.sink, link.begun > 0) for link in launch.chain.values()] == [("O", True)]
    assert desk.runner.checkpoint(old.version).is_dir()
    mark = cut_over_mark.read(desk.runner.checkpoint(new.version))
    assert mark is not None
    assert (mark.number, mark.done) == (7, True)


def test_after_they_have_parted_both_continue_without_an_end(desk, old, candidate):
    run_on(desk, old, 20)
    desk.runner.stop_at_same_offsets(old, candidate)
    desk.runner.resume_both(old, candidate)
    assert ends_of(desk)[3:] == [(0, None), (7, None)]
    for query in (old, candidate):
        assert desk.runner.running[query.version].status().state is State.RUNNING
    desk.runner.resume_both(old, candidate)
    assert len(desk.runtime.started) == 5


def test_both_run_on_if_the_rows_of_the_candidate_are_lost(desk, old, candidate):
    def lost(*_given):
        raise ROWS_LOST(query_id=old.id, topic="hidden", loss="was deleted")

    desk.runner._completion = SimpleNamespace(check_comparable=lost)
    with pytest.raises(ROWS_LOST.base):
        desk.runner.stop_at_same_offsets(old, candidate)
    assert ends_of(desk) == [(0, None), (7, None)]
    for query in (old, candidate):
        assert desk.runner.running[query.version].status().state is State.RUNNING


def test_a_running_version_that_does_not_read_on_is_not_waited_for_any_longer(desk, old, candidate):
    with pytest.raises(
        OffsetsNotReached, match="did not come to where the candidate has ended"
    ) as caught:
        desk.runner.stop_at_same_offsets(old, candidate)
    assert "the offsets from 10 to 14 of s-0" in caught.value.text()
    assert ends_of(desk)[2:] == [(7, {"s": {0: 14}}), (7, None)]
    for query in (old, candidate):
        assert desk.runner.running[query.version].status().state is State.RUNNING


@pytest.mark.parametrize(
    "problem", [OSError("the disk does not answer"), KsqlError("Kafka is away")], ids=str
)
def test_both_continue_if_their_position_cannot_be_read_once_they_have_met(
    desk, old, candidate, monkeypatch, problem
):
    committed, ended = checkpoint.committed, desk.runner.checkpoint(old.version)

    def fails_when_held(directory):
        held = [side._start_locked for side in desk.runner.running.values()]
        if directory == ended and held == [True, True] and desk.runner._syncs._untils == {}:
            monkeypatch.undo()
            raise problem
        return committed(directory)

    run_on(desk, old, 20)
    monkeypatch.setattr(checkpoint, "committed", fails_when_held)
    with pytest.raises(OffsetSyncFailed) as caught:
        desk.runner.stop_at_same_offsets(old, candidate)
    assert str(problem) in caught.value.text()
    for query in (old, candidate):
        running = desk.runner.running[query.version]
        assert running.status().state is State.RUNNING
        assert not running._start_locked
    assert ends_of(desk)[3:] == [(0, None), (7, None)]
    run_on(desk, old, 30)
    assert desk.runner.stop_at_same_offsets(old, candidate).offsets == {"s": {0: 30}}


@pytest.mark.parametrize("ended", ["old", "candidate"])
def test_a_version_that_is_stopped_ends_the_offset_sync(desk, old, candidate, ended):
    stopped, other = (old, candidate) if ended == "old" else (candidate, old)
    run_on(desk, old, 20)
    desk.runtime.before_batch = lambda spec: spec.until and desk.runner.stop_soon([stopped.version])
    with pytest.raises(OffsetSyncFailed):
        desk.runner.stop_at_same_offsets(old, candidate)
    desk.runtime.before_batch = lambda _spec: None
    assert list(desk.runner.running) == [other.version]
    running = desk.runner.running[other.version]
    await_true("the other one continues", lambda: running.status().state is State.RUNNING)
    desk.runner.resume_both(old, candidate)
    assert list(desk.runner.running) == [other.version]


def test_both_are_stopped_while_they_are_held(desk, old, candidate):
    run_on(desk, old, 20)
    desk.runner.stop_at_same_offsets(old, candidate)
    desk.runner.stop_soon([old.version, candidate.version])
    assert desk.runner.running == {}
    desk.runner.resume_both(old, candidate)
    assert desk.runner.running == {}


def test_a_cut_over_that_the_log_has_is_brought_about_without_an_offset_sync(desk, old, new):
    first = desk.runner.cut_over(old, new)
    assert first(PATIENCE_S).problem == ""
    assert list(desk.runner.running) == [new.version]
    assert desk.runtime.started[-1].sink_topic == "O"


def test_the_progress_of_a_version(tmp_path, old, candidate):
    desk = Desk(tmp_path, runtime=Reading())
    assert desk.runner.progress(old.version) is None
    desk.runner._begins = lambda topics: {(topic, 0): 3 for topic in topics}
    desk.runner.start(old)
    progress = desk.runner.progress(old.version)
    assert progress is not None
    assert progress[:-1] == ({"s": {0: 3}}, {"s": {0: 10}}, {"s": {0: 7}}, 0.0, 0, "", 0.0, 0.0)
    assert progress.free_bytes is not None
    assert progress.free_bytes > 0
    desk.runtime.launched[-1].isActive = False
    progress = desk.runner.progress(old.version)
    assert progress is not None
    assert progress.problem == "the query ended without an error"


@pytest.mark.parametrize("what", ["_begins", "_ends"])
def test_progress_whose_topics_are_gone_says_so(tmp_path, old, what):
    desk = Desk(tmp_path, runtime=Reading())
    desk.runner.start(old)

    def gone(_topics):
        raise UnknownTopic("s")

    setattr(desk.runner, what, gone)
    progress = desk.runner.progress(old.version)
    assert progress is not None
    assert progress.problem == "Kafka topic does not exist: s"
    assert progress.ends == {}
    assert percent(progress) == 0


class Kept:
    """Topics and copies of state, as a backfill asks for them."""

    def __init__(self, desk):
        self.calls: list[Any] = []
        desk.runner._completion = CutOverCompletion(self)
        desk.runtime.copy_state = lambda *given: self.calls.append(("copy", *given[1:]))

    def exists(self, topic):
        self.calls.append(("exists", topic))
        return True

    def equalize(self, origin, target, _writing, _check, *, decided=False, ahead=None):
        self.calls.append(("equalize", origin, target))
        return Equalized(Counts())


def test_a_backfill_takes_the_state_over_in_one_launch(desk, old, candidate, new):
    kept, hidden = Kept(desk), new.version.results_topic("default_")
    run_on(desk, old, 20)
    desk.runner.stop_at_same_offsets(old, candidate)
    folder = desk.runner.checkpoint(candidate.version) / "kept"
    batch = (checkpoint.last_committed(folder.parent) or 0) + 1
    desk.runner.backfill(old, candidate)
    assert kept.calls == [("copy", 0, folder), ("exists", hidden), ("equalize", "O", hidden)]
    launch = desk.runtime.started[-1]
    assert (launch.kept, launch.until) == (KeptState(str(folder), 0, batch), {"s": {0: 20}})
    assert checkpoint.last_committed(launch.checkpoint) == batch
    desk.runner.resume_both(old, candidate)
    assert [spec.kept for spec in desk.runtime.started[-2:]] == [None, None]
    for query in (old, candidate):
        assert desk.runner.running[query.version].status().state is State.RUNNING


def test_state_that_cannot_be_copied_lets_both_continue(desk, old, candidate):
    def fail(*_given):
        raise OSError("the disk is full")

    Kept(desk)
    desk.runtime.copy_state = fail
    run_on(desk, old, 20)
    desk.runner.stop_at_same_offsets(old, candidate)
    with pytest.raises(OffsetSyncFailed) as caught:
        desk.runner.backfill(old, candidate)
    assert "the disk is full" in caught.value.text()
    for query in (old, candidate):
        assert desk.runner.running[query.version].status().state is State.RUNNING


def test_versions_that_were_stopped_are_not_backfilled(desk, old, candidate):
    with pytest.raises(KsqlError, match="was ended while"):
        desk.runner.backfill(old, candidate)


def test_a_disk_that_fills_ends_the_candidate_alone(tmp_path, old, candidate):
    """The query runs on, and the candidate says what it lacks."""
    desk = Desk(tmp_path, runtime=Reading(), settings=TIMEOUT)
    desk.runner.start(old)

    def fill(spec):
        if spec.version == candidate.version:
            raise OSError(errno.ENOSPC, "No space left on device")

    desk.runtime.before_batch = fill
    with pytest.raises(KsqlError):
        desk.runner.start(candidate)
    assert list(desk.runner.running) == [old.version]
    desk.runner.resume_async([candidate])
    await_true(
        "the candidate has failed",
        lambda: "No space left" in getattr(desk.runner.progress(candidate.version), "problem", ""),
    )
    assert desk.runner.progress(old.version).problem == ""
