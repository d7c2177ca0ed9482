"""The switch's exits on Spark: batches that are long, fail, or were left half done."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ksql.core.errors import KsqlError
from ksql.spark.checkpoint import checkpoint
from ksql.spark.query.spec import State
from ksql.spark.query.switching import BatchUnfinished, NewPlanHandle, Switching, SwitchRefused
from ksql.sql.catalog.model import Topic
from tests.spark.test_failures import await_failure, await_state
from tests.waits import PATIENCE_S, await_true


@pytest.fixture
def switch(runtime):
    """Switch a query to another spec; ``allow`` leaves it a batch that fails each time."""
    came = []

    def run(old, spec, limit_s=60.0, *, allow=False):
        coming = NewPlanHandle(runtime.host(spec.place, lambda: spec), runtime.watch)
        came.append(coming.query)
        leave = (lambda _trouble: "left") if allow else None
        switching = Switching(old, coming, limit_s, time.monotonic, leave)
        switching.prepare(str)
        switching.commit()
        assert switching.first_batch(PATIENCE_S).problem == ""
        return coming.query

    yield run
    for query in came:
        query.stop(graceful=False)


def await_begun(query, topic):
    """Wait for the first batch with records; one without may have gone before it."""

    def begun():
        position = checkpoint.planned(query.place.checkpoint)
        return position is not None and any(position.offsets.get(topic, {}).values())

    await_true("a batch with records begins", begun)


def tags(desk, sink):
    return sorted((value["value"], value["tag"]) for value in desk.values(sink))


def test_a_long_batch_refuses_the_switch_and_is_not_cut_through(desk, start, switch):
    source, sink = desk.topic(1), desk.topic()
    query = start(desk.spec("copy", source, sink, tag="old", slow_s=4))
    assert query.await_started().state is State.RUNNING
    desk.send(source, *((f"k{n}", str(n)) for n in range(4)))
    await_begun(query, source)
    with pytest.raises(BatchUnfinished):
        switch(query, desk.spec("copy", source, sink, tag="new"), 0.2)
    assert query.await_idle(desk.ends(source))
    assert query.status().failures == ()
    desk.send(source, ("k", "4"))
    await_state(query, State.RUNNING)
    assert query.await_idle(desk.ends(source), 120)
    assert tags(desk, sink) == [(str(n), "old") for n in range(5)]
    new = switch(query, desk.spec("copy", source, sink, tag="new"))
    desk.send(source, ("k", "5"))
    assert new.await_idle(desk.ends(source))
    assert tags(desk, sink)[-1] == ("5", "new")


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_batch_left_half_done_is_finished_by_the_plan_that_began_it(
    desk, start, switch, tmp_path, exactly_once
):
    """Exactly once, its other tasks have written already: the rest must be of the same plan."""
    source, sink = desk.topic(1), desk.topic()
    mark = str(tmp_path / "mark")
    spec = desk.spec("count", source, sink, tag="old", raise_mark=mark, exactly_once=exactly_once)
    query = start(spec)
    desk.send(source, ("a", "1"), ("a", "CRASH"), ("a", "2"))
    await_failure(query)
    new = switch(query, desk.spec("count", source, sink, tag="new", exactly_once=exactly_once))
    desk.send(source, ("a", "3"))
    assert new.await_idle(desk.ends(source))
    assert [(v["n"], v["tag"]) for v in desk.values(sink)] == [
        (1, "old"),
        (2, "old"),
        (3, "old"),
        (4, "new"),
    ]


def test_a_batch_that_fails_each_time_refuses_the_switch(desk, start, switch, tmp_path):
    source, sink = desk.topic(1), desk.topic()
    desk.admin.delete(sink)
    query = start(desk.spec("copy", source, sink, tag="old"))
    desk.send(source, ("a", "1"))
    await_failure(query)
    with pytest.raises(BatchUnfinished, match="cannot be finished") as caught:
        switch(query, desk.spec("copy", source, sink, tag="new"))
    assert "Traceback" not in caught.value.text()
    assert query.status().state is not State.STOPPED
    assert not query.stopped


class Gone(KsqlError):
    """What a start may meet."""


@pytest.mark.parametrize("problem", [Gone("no topic"), OSError("disk"), RuntimeError("odd")])
def test_a_new_plan_that_does_not_start_gives_way(desk, start, runtime, problem):
    source, sink = desk.topic(1), desk.topic()
    query = start(desk.spec("copy", source, sink, tag="old"))
    assert query.await_started().state is State.RUNNING

    def prepare():
        raise problem

    coming = NewPlanHandle(runtime.host(query.place, prepare), runtime.watch)
    with pytest.raises(SwitchRefused):
        Switching(query, coming, 60.0, time.monotonic).prepare(str)
    await_state(query, State.RUNNING)
    desk.send(source, ("a", "1"))
    assert query.await_idle(desk.ends(source))
    assert tags(desk, sink) == [("1", "old")]


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_batch_that_fails_each_time_is_run_by_the_new_plan(
    desk, start, switch, tmp_path, exactly_once
):
    """Only the new plan has its results: the old one's tasks have written nothing that counts."""
    source, sink = desk.topic(1), desk.topic()
    mark = str(tmp_path / "nowhere" / "mark")  # it cannot be set: each run fails
    spec = desk.spec("count", source, sink, tag="old", raise_mark=mark, exactly_once=exactly_once)
    query = start(spec)
    desk.send(source, ("a", "1"), ("a", "CRASH"), ("a", "2"))
    await_failure(query)
    with pytest.raises(BatchUnfinished, match="cannot be finished"):
        switch(query, desk.spec("count", source, sink, tag="new", exactly_once=exactly_once))
    new = desk.spec("count", source, sink, tag="new", exactly_once=exactly_once)
    query = switch(query, new, allow=True)
    desk.send(source, ("a", "3"))
    assert query.await_idle(desk.ends(source))
    assert [(v["n"], v["tag"]) for v in desk.values(sink)] == [(n, "new") for n in (1, 2, 3, 4)]


def test_a_query_that_sleeps_until_its_next_trigger_is_replaced_at_once(desk, start, switch):
    """An hour is more than any patience: nothing waits for the trigger."""
    source, sink = desk.topic(1), desk.topic()
    desk.send(source, ("a", "1"))
    query = start(desk.spec("copy", source, sink, tag="old", trigger_ms=3_600_000))
    assert query.await_idle(desk.ends(source))
    desk.send(source, ("a", "2"))  # it waits for the trigger
    new = switch(query, desk.spec("copy", source, sink, tag="new"))
    assert new.await_idle(desk.ends(source))
    assert tags(desk, sink) == [("1", "old"), ("2", "new")]
    assert query.status().failures == ()


def files(query):
    """The content of the checkpoint, but for the work of Spark's own maintenance."""
    place = Path(query.place.checkpoint)
    kept = [path for path in place.rglob("*") if path.is_file() and "state" not in path.parts]
    return {path: path.read_bytes() for path in kept}


@pytest.mark.parametrize("kind", ["copy", "count"])
@pytest.mark.parametrize("taken", [True, False])
def test_a_plan_that_is_started_ahead_touches_nothing_before_its_command(
    desk, start, runtime, kind, taken
):
    """It is up, with records before it. It continues, or leaves the query as it was."""
    source, sink = desk.topic(1), desk.topic()
    old = start(desk.spec(kind, source, sink, tag="old"))
    desk.send(source, ("a", "1"))
    assert old.await_idle(desk.ends(source))
    spec = desk.spec(kind, source, sink, tag="new")
    coming = NewPlanHandle(runtime.host(spec.place, lambda: spec), runtime.watch)
    switching = Switching(old, coming, 60.0, time.monotonic)
    switching.prepare(str)
    coming.query.await_first_attempt(PATIENCE_S)
    before = files(old)
    desk.send(source, ("a", "2"))
    assert runtime.session.streams.active  # the new one waits
    assert not coming.query.has_started()
    assert files(old) == before
    if taken:
        switching.commit()
        assert switching.first_batch(PATIENCE_S).problem == ""
        continued = coming.query
    else:
        switching.rollback()
        continued = old
    try:
        assert continued.await_idle(desk.ends(source))
        later = [value["tag"] for value in desk.values(sink)]
        assert later == ["old", "new" if taken else "old"]
    finally:
        coming.query.stop(graceful=False)


def test_a_topic_that_comes_back_starts_its_query(desk, runtime):
    source, sink = desk.topic(1), desk.topic()
    desk.admin.delete(source)
    spec = desk.spec("copy", source, sink)
    query = runtime.host(spec.place, lambda: spec)
    runtime.watch(query)
    try:
        query.start_soon()
        query.await_first_attempt(PATIENCE_S)
        await_failure(query)
        assert query.status().state is State.ERROR
        desk.admin.create(Topic(source, 1))
        desk.send(source, ("a", "1"))
        await_state(query, State.RUNNING)
        assert query.await_idle(desk.ends(source))
        assert Path(query.place.checkpoint).is_dir()
    finally:
        query.stop(graceful=False)
