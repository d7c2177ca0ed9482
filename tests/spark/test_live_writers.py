"""Two queries without a backlog write one topic: a reader has the records of a burst by time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.spark.upstream import ALL, NOTHING
from tests.spark.writers import (
    EXACTLY_ONCE,
    MINUTE_MS,
    START_MS,
    STEPS,
    Writers,
    assert_by_time,
    backlog,
    queries,
)

FILE = "written-ranges"


def burst(desk, sources):
    """Both sources' records of an hour, as they would come, but at once."""
    for step in range(STEPS):
        for number, source in enumerate(sources):
            time = START_MS + step * MINUTE_MS + number * 1000
            desk.send(source, ("k", f"{source} {step}"), timestamp=time)


@EXACTLY_ONCE
def test_a_burst_is_read_by_time(desk, start, exactly_once):
    specs, sources, sink = queries(desk, exactly_once, mosts=(1000, 1000, 1000))
    running = [start(spec) for spec in specs]
    for each, source in zip(running, [*sources, *specs[2].topics], strict=True):
        assert each.await_idle(desk.ends(source))
    burst(desk, sources)
    for each, source in zip(running, [*sources, *specs[2].topics], strict=True):
        assert each.await_idle(desk.ends(source))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def test_records_of_one_writer_wait_only_for_the_next_look_of_the_other(desk, start):
    specs, sources, sink = queries(desk, mosts=(1000, 1000, 1000))
    running = [start(spec) for spec in specs]
    backlog(desk, sources[0], 0, count=5)
    for each, source in zip(running, [*sources, *specs[2].topics], strict=True):
        assert each.await_idle(desk.ends(source))
    assert len(desk.read(sink)) == 5


@EXACTLY_ONCE
def test_a_reader_knows_after_a_restart_who_has_written_what(desk, start, runtime, exactly_once):
    """The queries are forgotten, as in a process that begins."""
    specs, sources, sink = queries(desk, exactly_once, mosts=(20, 7, 20))
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
        each.stop()
    restarted = forgotten(runtime, specs)
    for spec in restarted:
        assert start(spec).await_idle(desk.ends(*spec.topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def test_ranges_of_another_topic_are_left_out(desk, start, runtime):
    """A candidate writes a topic of its own first: its ranges are none of the common topic."""
    specs, sources, sink = queries(desk, mosts=(20, 7, 1000))
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
        each.stop()
    for file in desk.folder.rglob(FILE):
        lines = file.read_text().splitlines(keepends=True)
        candidate = json.loads(lines[-1]) | {"topic": "candidate", "number": 1, "until": 1}
        file.write_text("".join([json.dumps(candidate) + "\n", *lines]))
    for spec in forgotten(runtime, specs):
        assert start(spec).await_idle(desk.ends(*spec.topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def test_a_reader_knows_after_a_restart_what_one_wrote_before_the_other_one_was_there(
    desk, start, runtime
):
    """INSERT INTO comes after the stream has been made: one writer is ahead, and then all stop."""
    specs, sources, sink = queries(desk, mosts=(7, 7, 1000))
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    alone = {name: link for name, link in specs[0].chain.items() if name != specs[1].name}
    running = []
    for spec, source in zip([replace(specs[0], chain=alone), specs[1]], sources, strict=True):
        running.append(start(spec))
        assert running[-1].await_idle(desk.ends(source))
    for query in running:
        query.stop()
    for spec in forgotten(runtime, specs):
        assert start(spec).await_idle(desk.ends(*spec.topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


def forgotten(runtime, specs):
    """The same queries in a process that knows nothing of what they have done."""
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    for spec in specs:
        progress.forget(spec.name, 2)
    links = {name: link._replace(begun=2) for name, link in specs[0].chain.items()}
    return [replace(spec, chain=links) for spec in specs]


def test_what_cannot_be_read_of_the_ranges_is_left_out(desk, start, runtime):
    specs, sources, sink = queries(desk, mosts=(20, 7, 1000))
    for number, source in enumerate(sources):
        backlog(desk, source, number * 1000)
    for each, source in zip([start(spec) for spec in specs[:2]], sources, strict=True):
        assert each.await_idle(desk.ends(source))
        each.stop()
    files = [*desk.folder.rglob(FILE)]
    assert len(files) == 2
    for file in files:
        file.write_text(file.read_text() + '{"version": 1, "numb')
    for spec in forgotten(runtime, specs):
        assert start(spec).await_idle(desk.ends(*spec.topics))
    assert assert_by_time(desk, sources, sink) == 2 * STEPS


# --- whose turn it is


class Watched(Writers):
    """The same two, whose topic a third one reads; both had processed all."""

    def __init__(self, runtime, desk):
        super().__init__(runtime, desk)
        sources = self._jvm.java.util.HashSet()
        sources.add(f"shared_{self.first}")
        self._progress.announce(f"reads_{self.first}", "reads", sources, "", 1, 0)
        for name in (self.first, self.second):
            self.look(name)
            self.find_nothing(name)

    def find(self, name, time, now_ms=0):
        """A look that finds records up to a time."""
        self._progress.looked(name, self._progress.since(name, now_ms), time, True, now_ms)

    def find_nothing(self, name):
        self._progress.looked(name, self._progress.since(name, 0), ALL, False, 0)
        self._progress.planned(name, ALL, None)

    def batch(self, name, until):
        self._progress.planned(name, until, self._jvm.java.util.HashMap())
        self.end(name)

    def is_wanted(self, name):
        return self._progress.isWanted(name)


@pytest.fixture
def watched(runtime, desk):
    return Watched(runtime, desk)


def test_live_records_wait_until_the_other_writer_has_looked(watched):
    first, second = watched.first, watched.second
    watched.find(first, 10)
    assert watched.turn(first, ALL) == NOTHING
    assert watched.is_wanted(second)
    watched.find_nothing(second)
    assert not watched.is_wanted(second)
    assert watched.turn(first, ALL) == ALL


def test_both_write_live_records_up_to_one_time(watched):
    first, second = watched.first, watched.second
    watched.find(first, 10)
    assert watched.turn(first, ALL) == NOTHING
    watched.find(second, 30)
    assert watched.turn(second, ALL) == 10
    assert watched.turn(first, ALL) == NOTHING  # one after the other
    watched.batch(second, 10)
    assert watched.turn(first, ALL) == ALL
    watched.batch(first, ALL)
    watched.find(second, 30)
    assert watched.turn(second, ALL) == NOTHING  # the first may have more before that
    watched.find_nothing(first)
    assert watched.turn(second, ALL) == ALL


def test_live_records_far_behind_do_not_hold_up_the_others(watched):
    """Records that come later belong to a later turn."""
    first, second = watched.first, watched.second
    for name, time in ((first, 10), (second, 1000)):
        watched.find(name, time)
    assert watched.turn(second, ALL) == 10
    watched.batch(second, 10)
    assert watched.turn(first, ALL) == ALL
    watched.batch(first, ALL)
    watched.find(second, 1000)
    watched.find(first, 11)
    assert watched.turn(first, ALL) == ALL
    watched.batch(first, ALL)
    assert watched.turn(second, ALL) == ALL


def test_one_that_does_not_look_is_waited_for_only_for_a_time(watched):
    watched.find(watched.first, 10)
    assert watched.turn(watched.first, ALL, 600_000) == NOTHING
    assert watched.turn(watched.first, ALL, 600_001) == ALL


def test_a_backlog_waits_until_a_live_writer_has_looked(watched):
    watched._progress.behind(watched.first)
    watched.find(watched.first, 10)
    assert watched.turn(watched.first, 10) == NOTHING
    watched.find_nothing(watched.second)
    assert watched.turn(watched.first, 10) == 10


def test_a_look_sees_no_more_than_those_upstream(runtime, watched):
    """A third query, which one of them reads, has not looked yet."""
    jvm, progress = watched._jvm, watched._progress
    sources = jvm.java.util.HashSet()
    sources.add(f"between_{watched.first}")
    upstream = f"third_{watched.first}"
    progress.announce(upstream, upstream, jvm.java.util.HashSet(), f"between_{watched.first}", 1, 0)
    late = f"fourth_{watched.first}"
    progress.announce(late, late, sources, f"shared_{watched.first}", 1, 0)
    for name in (upstream, late):
        watched.look(name)
        watched.find_nothing(name)
    watched.find(watched.first, 10)
    watched.turn(watched.first, ALL)
    watched.find_nothing(watched.second)
    watched.find_nothing(late)
    assert watched.turn(watched.first, ALL) == NOTHING
    assert watched.is_wanted(upstream)
    assert not watched.is_wanted(late)  # its look would see nothing new
    watched.find_nothing(upstream)
    assert watched.is_wanted(late)
    watched.find_nothing(late)
    assert watched.turn(watched.first, ALL) == ALL
