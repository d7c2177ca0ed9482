"""Two queries write one topic over a backlog: its readers have the records of both by time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.spark.query.spec import State
from tests.spark.upstream import ALL, FAR_MS, FOR_EVER_MS, NOTHING, ends_in_java
from tests.spark.writers import (
    EXACTLY_ONCE,
    FAR,
    START_MS,
    STEPS,
    Writers,
    assert_by_time,
    backlog,
    queries,
)
from tests.waits import await_true


@EXACTLY_ONCE
@pytest.mark.parametrize("mosts", [(20, 7, 1000), (1000, 1000, 1000), (1000, 9, 10)])
def test_a_backlog_of_both_is_read_by_time(desk, start, exactly_once, mosts):
    specs, sources, sink = queries(desk, exactly_once, mosts)
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    reading = start(specs[2])
    writing = [start(spec) for spec in specs[:2]]
    for each, source in zip(writing, sources, strict=True):
        assert each.await_idle(desk.ends(source))
    assert reading.await_idle(desk.ends(*specs[2].topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def test_a_reader_that_begins_later_ends_its_batches_where_both_had_come_to_one_time(desk, start):
    specs, sources, sink = queries(desk, mosts=(20, 7, 20))
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
    assert start(specs[2]).await_idle(desk.ends(*specs[2].topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def test_one_with_little_does_not_run_ahead_of_one_with_much(desk, start):
    specs, sources, sink = queries(desk, mosts=(1000, 7, 20))
    backlog(desk, sources[0], 0, count=5)
    backlog(desk, sources[1], 1000)
    reading = start(specs[2])
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
    assert reading.await_idle(desk.ends(*specs[2].topics))
    assert assert_by_time(desk, sources, sink) == STEPS + 5


def test_one_that_does_not_run_holds_up_nobody(desk, start):
    specs, sources, sink = queries(desk)
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    second = specs[1].name
    links = {**specs[0].chain, second: specs[0].chain[second]._replace(begun=0)}
    first, reader = (replace(spec, chain=links, upstream_wait_ms=0) for spec in specs[::2])
    writing, reading = start(first), start(reader)
    assert writing.await_idle(desk.ends(sources[0]))
    assert reading.await_idle(desk.ends(*reader.topics))
    assert len(desk.read(sink)) == STEPS


def test_live_records_do_not_wait_for_the_backlog_of_another_query(desk, start):
    """One that had processed all continues, between the batches of the one that has a backlog."""
    specs, sources, sink = queries(desk, mosts=(1000, 7, 1000))
    writing, reading = start(specs[0]), start(replace(specs[2], upstream_wait_ms=0))
    backlog(desk, sources[0], 0)
    assert writing.await_idle(desk.ends(sources[0]))
    backlog(desk, sources[1], 1000)
    second = start(specs[1])
    desk.send(sources[0], ("k", "live"), timestamp=FAR_MS // 1000)
    assert writing.await_idle(desk.ends(sources[0]))
    assert second.await_idle(desk.ends(sources[1]))
    assert reading.await_idle(desk.ends(*specs[2].topics))
    assert len(desk.read(sink)) == 2 * STEPS + 1


def test_more_records_of_one_time_than_a_batch_may_have(desk, start):
    specs, sources, sink = queries(desk, mosts=(3, 20, 1000))
    for step in range(10):
        desk.send(sources[0], ("k", f"{sources[0]} {step}"), timestamp=START_MS)
    backlog(desk, sources[1], 1000)
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
    assert start(specs[2]).await_idle(desk.ends(*specs[2].topics))
    assert assert_by_time(desk, sources, sink) == STEPS + 10


def test_a_live_reader_does_not_wait_for_the_backlog_of_another_writer(desk, start, runtime):
    """It has read later records than that one writes, which hide them after a while."""
    specs, _, sink = queries(desk)
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    nothing = runtime.session.sparkContext._jvm.java.util.HashMap()
    live, late, _ = (spec.name for spec in specs)
    links = {name: link for name, link in specs[2].chain.items() if name != late}
    [between] = specs[2].topics
    desk.send(between, *[("k", "live")] * 5, timestamp=9 * START_MS)
    reading = start(replace(specs[2], chain=links))
    assert reading.await_started().state is State.RUNNING
    progress.begin(live)
    progress.planned(live, ALL, None)
    assert reading.await_idle(desk.ends(between))
    runtime.announce(late, specs[2].chain[late])
    progress.begin(late)
    progress.planned(late, START_MS, nothing)
    progress.done(late, None, False, 0)
    desk.send(between, *[("k", "old")] * 10, timestamp=START_MS - 1)
    assert reading.await_idle(desk.ends(between))
    progress.planned(late, 2 * START_MS, nothing)
    progress.done(late, None, False, 0)
    desk.send(between, ("k", "live"), timestamp=9 * START_MS + 1)
    assert reading.await_idle(desk.ends(between))
    assert len(desk.read(sink)) == 16


def test_a_reader_waits_for_more_records_of_the_time_that_a_writer_has_come_to(
    desk, start, runtime
):
    specs, _, sink = queries(desk)
    jvm = runtime.session.sparkContext._jvm
    first, second, _ = (spec.name for spec in specs)
    [between] = specs[2].topics
    reading = start(specs[2])
    await_true("it has looked", reading.has_started)

    def write(name, until, value, time, count=1):
        jvm.ksql.Progress.planned(name, until, ends_in_java(jvm, desk, between))
        desk.send(between, *[("k", value)] * count, timestamp=time)
        jvm.ksql.Progress.done(name, ends_in_java(jvm, desk, between), False, 0)

    for name in (first, second):
        jvm.ksql.Progress.begin(name)
    write(first, START_MS, "some", START_MS, count=5)
    jvm.ksql.Progress.planned(second, START_MS, None)
    assert reading.await_idle(desk.ends(between))
    write(second, 2 * START_MS, "later", START_MS + 1)
    assert not reading.await_idle(desk.ends(between), timeout_s=1)
    write(first, 2 * START_MS, "more", START_MS)
    assert reading.await_idle(desk.ends(between))
    assert [row["value"] for row in desk.values(sink)] == ["some"] * 5 + ["more", "later"]


# --- whose turn it is


@pytest.fixture
def writers(runtime, desk):
    return Writers(runtime, desk)


def test_they_go_to_the_lower_of_their_next_ends_one_after_the_other(writers):
    first, second = writers.first, writers.second
    for name in (first, second):
        writers.look(name)
    assert writers.turn(first, 10) == NOTHING  # it is not known where the other one would end
    assert writers.turn(second, 3) == 3
    assert writers.turn(first, 10) == NOTHING  # the other one has its turn
    writers.run(second, 3)
    assert writers.turn(second, 6) == NOTHING
    assert writers.turn(first, 10) == 3
    writers.run(first, 3)
    assert writers.turn(first, 9) == 6


def test_one_that_is_starting_is_waited_for_as_long_as_readers_wait(writers):
    writers.look(writers.first)
    assert writers.turn(writers.first, 10) == NOTHING
    assert writers.turn(writers.first, 10, FOR_EVER_MS) == 10


def test_one_that_stops_is_not_waited_for(writers):
    writers.look(writers.first)
    writers._progress.stop(writers.second, 0)
    assert writers.turn(writers.first, 10) == 10


def test_a_turn_that_led_to_no_batch_is_over_with_its_query(writers):
    for name in (writers.first, writers.second):
        writers.look(name)
    assert writers.turn(writers.first, 10) == NOTHING
    assert writers.turn(writers.second, 10) == 10
    assert writers.turn(writers.first, 10) == NOTHING
    writers._progress.stop(writers.second, 0)
    assert writers.turn(writers.first, 10) == 10


def test_two_that_have_processed_all_do_not_wait_for_each_other(writers):
    for name in (writers.first, writers.second):
        writers.look(name)
        writers._progress.planned(name, ALL, None)
    assert writers.turn(writers.first, 10) == 10
    assert writers.turn(writers.second, 20) == 20


def test_more_of_one_time_waits_for_nobody_who_has_come_to_it(writers):
    for name in (writers.first, writers.second):
        writers.look(name)
    assert writers.turn(writers.first, 5) == NOTHING
    writers.run(writers.second, 5)
    writers.run(writers.first, 5)
    assert writers.turn(writers.second, 9) == NOTHING  # the other one may have more of that time
    writers.run(writers.first, 5)
    assert writers.turn(writers.first, 7) == 7


def test_more_of_one_time_waits_for_nobody_who_has_processed_all(writers):
    for name in (writers.first, writers.second):
        writers.look(name)
    writers._progress.planned(writers.second, ALL, None)
    writers.run(writers.first, 5)
    writers.run(writers.first, 5)


def queued_after_live_batch(writers):
    """One had a live batch, and the other one has waited for its end: the names of both."""
    live, late = writers.first, writers.second
    for name in (live, late):
        writers.look(name)
    writers._progress.planned(live, ALL, None)
    assert writers.turn(live, ALL) == ALL
    writers._progress.planned(live, ALL, writers.offsets(FAR))
    assert writers.turn(late, 10) == NOTHING
    writers.end(live)
    return live, late


def test_live_batches_one_right_after_the_other_give_way(writers):
    """The one with a backlog looks for longer than the other one rests between two batches."""
    live, late = queued_after_live_batch(writers)
    assert writers.turn(live, ALL) == NOTHING
    writers.run(late, 10)
    assert writers.turn(late, 20) == NOTHING
    assert writers.turn(live, ALL) == ALL


def test_live_batches_give_way_only_for_a_time(writers):
    """A query may have long pauses between its looks."""
    live, _ = queued_after_live_batch(writers)
    assert writers.turn(live, ALL, 60_000) == NOTHING
    assert writers.turn(live, ALL, 60_001) == ALL


def test_a_half_done_batch_that_runs_again_has_its_turn(writers):
    """The process that had planned it is gone."""
    again, live = writers.first, writers.second
    writers._progress.rerun(again)
    writers.look(live)
    writers._progress.planned(live, ALL, None)
    assert writers.turn(live, ALL) == NOTHING
    writers.end(again)
    assert writers.turn(live, ALL) == ALL


def test_what_one_wrote_while_one_that_reads_it_wrote_too_is_nobodys(runtime, desk):
    writers = Writers(runtime, desk)
    sources, sink = runtime.session.sparkContext._jvm.java.util.HashSet(), f"shared_{writers.first}"
    sources.add(sink)
    writers._progress.announce(writers.second, writers.second, sources, sink, 1, 0)
    for name in (writers.first, writers.second):
        writers.look(name)
    for name, start in ((writers.first, FAR), (writers.second, FAR + 2)):
        assert writers.turn(name, 10) == 10
        writers._progress.planned(name, 10, writers.offsets(start))
    writers._progress.done(writers.second, writers.offsets(FAR + 8), False, 0)
    writers._progress.done(writers.first, writers.offsets(FAR + 9), False, 0)
    assert writers.lanes(FAR + 9) == [f"Lane[start={FAR}, end={FAR + 9}, writer=0]"]


def test_versions_of_one_query_and_writers_of_other_topics_do_not_wait(runtime, desk):
    writers = Writers(runtime, desk)
    writers.announce_one(writers.second, 1, sink="another")
    writers.look(writers.first)
    assert writers.turn(writers.first, 10) == 10
    sources = writers._jvm.java.util.HashSet()
    sink = f"shared_{writers.first}"
    writers._progress.announce(writers.second, writers.first, sources, sink, 1, 0)
    assert writers.turn(writers.first, 20) == 20


def test_one_that_reads_what_comes_of_the_topic_is_not_waited_for(runtime, desk):
    writers = Writers(runtime, desk)
    sources = writers._jvm.java.util.HashSet()
    sources.add(f"shared_{writers.first}")
    sink = f"shared_{writers.first}"
    writers._progress.announce(writers.second, writers.second, sources, sink, 1, 0)
    writers.look(writers.first)
    assert writers.turn(writers.first, 10) == 10
    assert writers.turn(writers.second, 10) == 10
