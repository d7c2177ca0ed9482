"""A query goes no further than those whose results it reads; it waits for them, not for ever."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from ksql.spark.query.spec import Link, State
from tests.spark.upstream import FAR_MS, FOR_EVER_MS, NOTHING, Progresses, producer, reader_of
from tests.waits import await_true


def chain(desk, wait_ms):
    """Two queries, of which the second one reads what the first one writes; and that topic."""
    source, between, sink = (desk.topic() for _ in range(3))
    first = desk.spec("copy", source, between, name="first", sink_topic=between)
    second = desk.spec("copy", between, sink, name="second", sink_topic=sink)
    links = {first.name: Link(between, (source,)), second.name: Link(sink, (between,))}
    desk.send(between, ("k", "of the past"))
    desk.send(source, *[(f"k{n}", f"{n}") for n in range(50)])
    return [replace(each, chain=links, upstream_wait_ms=wait_ms) for each in (first, second)], sink


def test_it_waits_for_one_that_has_not_begun(desk, start):
    (first, second), sink = chain(desk, FOR_EVER_MS)
    reading = start(second)
    await_true("it has looked at its source", reading.has_started)
    assert desk.read(sink) == []
    writing = start(replace(first, trigger_ms=3_600_000))  # its batch counts when it has ended
    assert writing.await_idle(desk.ends(*first.topics))
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 51


def test_it_waits_only_for_a_time(desk, start):
    (_, second), sink = chain(desk, 0)
    reading = start(second)
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 1


def test_waits_for_a_stopping_query_no_longer_than_the_limit(desk, start):
    (first, second), sink = chain(desk, 0)
    writing = start(first)
    assert writing.await_idle(desk.ends(*first.topics))
    writing.stop()
    reading = start(second)
    assert reading.await_idle(desk.ends(*second.topics))
    desk.send(next(iter(second.topics)), ("k", "of another producer"))
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 52


def test_waits_for_records_that_a_transaction_hides(desk, start):
    """Kafka marks the end of a transaction after its writer has the answer; so does this one."""
    (first, second), sink = chain(desk, FOR_EVER_MS)
    between = next(iter(second.topics))
    pending = producer(desk)
    pending.produce(between, b"pending", partition=1)
    pending.flush()
    writing = start(replace(first, exactly_once=True))
    assert writing.await_idle(desk.ends(*first.topics))
    reading = start(second)
    await_true("it has looked at its source", reading.has_started)
    assert desk.read_beside(sink) == []
    pending.commit_transaction()
    desk.settle(between)
    assert reading.await_idle(desk.ends(between))
    assert len(desk.read(sink)) == 52


def test_a_backlog_that_was_written_in_transactions_is_cut_by_time(desk, start):
    """Two partitions have the same times; the second one was committed after the first."""
    source, sink = desk.topic(), desk.topic(1)
    written = producer(desk)
    for partition in (0, 1):
        for second in range(60):
            written.produce(source, b"v", b"k", partition, timestamp=1_000_000 + second * 1000)
            if second % 20 == 19:
                written.commit_transaction()
                written.begin_transaction()
    written.abort_transaction()
    desk.settle(source)
    spec = desk.spec("copy", source, sink, max_records=30)
    links = {"writer": Link(source, (), exactly_once=True), spec.name: Link(sink, (source,))}
    reading = start(replace(spec, chain=links))
    assert reading.await_idle(desk.ends(source))
    batches = [file for file in (spec.checkpoint / "offsets").iterdir() if file.name.isdigit()]
    for batch in batches:
        ends = json.loads(batch.read_text().splitlines()[-1])[source]
        assert abs(ends["0"] - ends["1"]) <= 5  # times differ by a second, marks take an offset


def test_a_batch_that_is_a_part_of_a_transaction_states_how_far_it_is(runtime, desk, start):
    """No mark lies among as many records as a batch may have."""
    source, sink = desk.topic(1), desk.topic(1)
    written = producer(desk)
    for second in range(60):
        written.produce(source, b"v", b"k", 0, timestamp=1_000_000 + second * 1000)
    written.commit_transaction()
    desk.settle(source)
    spec = desk.spec("copy", source, sink, sink_topic=sink, max_records=10, trigger_ms=3_600_000)
    reader = f"reader_{desk.folder.name}"
    links = {"writer": Link(source, (), exactly_once=True), spec.name: Link(sink, (source,))}
    start(replace(spec, chain={**links, reader: Link("", (sink,), begun=1)}))
    upstream = runtime.session.sparkContext._jvm.ksql.Progress.upstream

    def until():
        says = dict(upstream(reader, 0)).get(spec.name)
        return NOTHING if says is None else says.until()

    await_true("its first batch is done", lambda: until() != NOTHING)
    assert 1_000_000 < until() <= 1_010_000


def test_what_lies_before_the_beginning_of_a_query_was_not_read(runtime, desk, start):
    """A stream is read from its end on, a query's result from its beginning."""
    stream, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    desk.send(stream, ("k", "skipped"), timestamp=2_000_000)
    topics = {stream: desk.ends(stream)[stream], between: "earliest"}
    spec, upstream = reader_of(desk, stream, between, sink)
    reading = start(replace(spec, topics=topics))
    await_true("it has looked at its source", reading.has_started)
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    progress.planned(upstream, 1_000_000, None)
    desk.send(stream, ("k", "later"), timestamp=3_000_000)
    desk.send(between, ("k", "earlier"), timestamp=900_000)
    await_true("what is older is read", lambda: len(desk.read_beside(sink)) == 1)
    assert json.loads(desk.read(sink)[0].value)["value"] == "earlier"
    progress.planned(upstream, FAR_MS, None)
    assert reading.await_idle(desk.ends(stream, between))
    assert json.loads(desk.read(sink)[-1].value)["value"] == "later"


def test_marks_of_transactions_are_no_records_of_their_time(runtime, desk, start):
    """Nobody knows any more that the topic was written in transactions, long after its times."""
    old, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    written = producer(desk)
    for second in range(9):
        written.produce(old, b"old", b"k", 0, timestamp=1_000_000 + second * 1000)
        if second % 3 == 2:
            written.commit_transaction()
            written.begin_transaction()
    written.abort_transaction()
    desk.settle(old)
    spec, upstream = reader_of(desk, old, between, sink)
    reading = start(spec)
    await_true("it has looked at its source", reading.has_started)
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    progress.planned(upstream, 1_100_000, None)
    await_true("all that is older is read", lambda: len(desk.read_beside(sink)) == 9)
    desk.send(between, ("k", "later"), timestamp=1_200_000)
    desk.send(old, ("k", "older"), timestamp=1_050_000)
    await_true("the older one is read", lambda: len(desk.read_beside(sink)) > 9)
    assert json.loads(desk.read(sink)[-1].value)["value"] == "older"
    progress.planned(upstream, FAR_MS, None)
    assert reading.await_idle(desk.ends(old, between))
    assert json.loads(desk.read(sink)[-1].value)["value"] == "later"


def test_a_restarted_query_knows_what_it_has_read_of_transactions(runtime, desk, start):
    """It does not wait for a query that is behind that."""
    old, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    written = producer(desk)
    for second in range(9):
        written.produce(old, b"old", b"k", 0, timestamp=1_000_000 + second * 1000)
    written.commit_transaction()
    desk.settle(old)
    spec = desk.spec("copy", [old, between], sink, name="second", sink_topic=sink)
    links = {"writer": Link(old, (), exactly_once=True), spec.name: Link(sink, (old, between))}
    reading = start(replace(spec, chain=links))
    assert reading.await_idle(desk.ends(old, between))
    reading.stop()
    waiting, upstream = reader_of(desk, old, between, sink)
    reading = start(replace(waiting, chain={**links, **waiting.chain}))
    await_true("it has looked at its source", reading.has_started)
    runtime.forget("writer", 0)  # nobody waits for it
    runtime.session.sparkContext._jvm.ksql.Progress.planned(upstream, 1_005_000, None)
    desk.send(between, ("k", "v"), timestamp=1_200_000)
    assert reading.await_idle(desk.ends(old, between))
    assert len(desk.read(sink)) == 10


def test_a_launch_that_lists_a_query_which_has_ended_brings_nothing_back(desk, start, runtime):
    """It took the list before that one was dropped."""
    (first, second), sink = chain(desk, FOR_EVER_MS)
    links = {**second.chain, first.name: second.chain[first.name]._replace(begun=1)}
    runtime.forget(first.name, 2)
    reading = start(replace(second, chain=links))
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 1


def test_does_not_wait_for_its_own_input(desk, start):
    """Two queries that read each other's results, and nothing moves them but the first record."""
    one, other = desk.topic(), desk.topic()
    first = desk.spec("copy", one, other, name="first", sink_topic=other)
    second = desk.spec("tell", other, None, name="second")
    links = {first.name: Link(other, (one,)), second.name: Link(one, (other,))}
    specs = [replace(each, chain=links, upstream_wait_ms=FOR_EVER_MS) for each in (first, second)]
    desk.send(one, ("k", "v"))
    for spec in specs:
        assert start(spec).await_idle(desk.ends(*spec.topics))


def test_waits_for_a_query_that_had_read_all_when_it_stops(desk, start):
    """What comes while it is stopped is older than what its reader would read beside it."""
    source, between, other, sink = (desk.topic() for _ in range(4))
    first = desk.spec("copy", source, between, name="first", sink_topic=between)
    second = desk.spec("copy", [between, other], sink, name="second", sink_topic=sink)
    links = {first.name: Link(between, (source,)), second.name: Link(sink, (between, other))}
    specs = [replace(each, chain=links, upstream_wait_ms=FOR_EVER_MS) for each in (first, second)]
    for spec in specs:
        running = start(spec)
        assert running.await_started().state is State.RUNNING
        running.stop()
    desk.send(source, ("k", "earlier"))
    desk.send(other, ("k", "later"))
    reading = start(specs[1])
    assert reading.await_started().state is State.RUNNING
    assert desk.read(sink) == []
    assert start(specs[0]).await_idle(desk.ends(source))
    assert reading.await_idle(desk.ends(between, other))
    assert len(desk.read(sink)) == 2


def test_waits_for_a_query_that_is_starting(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    assert progress.waits_for(600_000) == {progress.first}
    assert progress.waits_for(600_001) == set()
    progress.announce(2, 700_000)
    progress.stop(700_000)  # its start failed
    assert progress.waits_for(730_000) == {progress.first}
    assert progress.waits_for(730_001) == set()


def test_waits_for_a_query_from_the_announcement_of_its_launch_on(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(0, 0)
    assert progress.waits_for(30_001) == set()
    launched = int(time.time() * 1000)
    runtime.announce(progress.first, Link(progress.first, (), begun=1))
    assert progress.waits_for(launched + 600_000) == {progress.first}


def test_waits_a_limited_time_for_a_query_whose_start_fails(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    runtime.rest(progress.first)
    assert progress.waits_for(FAR_MS) == set()


def test_waits_a_limited_time_for_a_query_that_fails_again_and_again(runtime, desk):
    """Each time it looks, and plans a batch; but none is done."""
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    progress.begin(0)
    progress.plan(5)
    progress.done(1_000)
    for now_ms in (1_000, 11_000, 21_000, 31_000):
        progress.stop(now_ms)
        progress.begin(now_ms)
        progress.plan(9)
    progress.stop(31_000)
    assert progress.waits_for(31_000) == {progress.first}
    assert progress.waits_for(31_001) == set()
    progress.begin(40_000)
    progress.done(41_000)
    assert progress.waits_for(FAR_MS) == {progress.first}  # it runs


def test_waits_for_a_half_done_batch_that_runs_again(runtime, desk):
    """Such a batch is run before the query looks at what there is."""
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    progress.begin(0)
    progress.plan(9)
    progress.stop(1_000)
    assert progress.waits_for(31_001) == set()
    progress.rerun()
    assert progress.waits_for(FAR_MS) == {progress.first}
    progress.stop(40_000)
    assert progress.waits_for(40_000) == set(), "it has failed since 1,000"


def test_a_query_that_works_again_is_waited_for_again(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    progress.begin(0)
    progress.stop(1_000)
    progress.begin(50_000)
    progress.plan(9)
    progress.done(51_000)
    progress.stop(52_000)
    assert progress.waits_for(82_000) == {progress.first}
    assert progress.waits_for(82_001) == set()


def test_a_batch_that_was_never_begun_is_not_done(runtime, desk):
    """The query failed before Spark had written what it had planned."""
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    progress.begin(0)
    progress.plan(5)
    progress.done(0)
    progress.plan(9)
    progress.stop(0)
    progress.begin(0)
    assert progress.until() == 5
    progress.plan(9)
    progress.stop(0)
    progress.done(0)  # it was written, and run again at the start
    progress.begin(0)
    assert progress.until() == 9


def test_a_reader_that_is_new_within_a_batch_waits_for_its_end(runtime, desk):
    """Where the batch begins in the topic was not looked at: there was no reader."""
    progress = Progresses(runtime, desk)
    progress.announce_first(1, 0)
    progress.begin(0)
    progress.plan(5)
    progress.done(0)
    progress.plan(9)
    progress.announce(1, 0)
    assert progress.until() == NOTHING
    progress.done(0)
    assert progress.until() == 9


def test_the_limit_is_the_readers_own(desk, start, runtime):
    """The query that starts before it has another one."""
    (first, second), _ = chain(desk, FOR_EVER_MS)
    start(replace(first, upstream_wait_ms=0)).stop()
    start(second)
    upstream = runtime.session.sparkContext._jvm.ksql.Progress.upstream
    assert first.name in upstream(second.name, int(time.time() * 1000) + FOR_EVER_MS // 2)


def test_waits_a_limited_time_for_a_query_that_does_not_run(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(0, 0)
    assert progress.waits_for(30_000) == {progress.first}
    assert progress.waits_for(30_001) == set()


def test_waits_again_for_a_query_that_is_to_restart(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    progress.stop(1_000)
    assert progress.waits_for(31_000) == {progress.first}
    assert progress.waits_for(31_001) == set()
    progress.announce(1, 40_000)  # whatever starts beside it
    assert progress.waits_for(40_000) == set()
    progress.announce(2, 50_000)
    assert progress.waits_for(650_000) == {progress.first}


def test_does_not_wait_for_a_terminated_query(runtime, desk):
    progress = Progresses(runtime, desk)
    progress.announce(1, 0)
    assert progress.waits_for(0) == {progress.first}
    runtime.forget(progress.first, 0)
    assert progress.waits_for(0) == set()
