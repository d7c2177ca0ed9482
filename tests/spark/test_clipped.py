"""A query ends its batches where those whose results it reads have finished theirs."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from ksql.spark.query.spec import Link
from ksql.sql.catalog.model import Topic
from tests.spark.upstream import ALL, FAR_MS, NOTHING, ends_in_java, producer, reader_of
from tests.waits import await_true


def test_half_of_a_batch_is_not_read_of_a_query_that_is_behind_either(runtime, desk, start):
    """Of a query that reads what is older than what was read already."""
    stream, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    desk.send(stream, ("k", "read"), timestamp=3_000_000)
    spec, upstream = reader_of(desk, stream, between, sink)
    reading = start(spec)
    await_true("it has looked at its source", reading.has_started)
    jvm = runtime.session.sparkContext._jvm
    progress = jvm.ksql.Progress
    progress.planned(upstream, FAR_MS, None)
    await_true("what there is is read", lambda: len(desk.read_beside(sink)) == 1)
    progress.planned(upstream, 1_000_000, None)
    progress.planned(upstream, 1_100_000, ends_in_java(jvm, desk, between))
    desk.send(between, ("k", "half"), timestamp=1_050_000)
    desk.send(stream, ("k", "live"), timestamp=3_001_000)
    await_true("it continues", lambda: len(desk.read_beside(sink)) > 1)
    assert [row["value"] for row in desk.values(sink)] == ["read", "live"]
    progress.done(upstream, None, True, 0)
    assert reading.await_idle(desk.ends(stream, between))
    assert len(desk.read(sink)) == 3


def test_a_half_done_batch_that_runs_again_is_waited_for(runtime, desk, start):
    """However long that takes: the wait for a query that does not run would be over at once."""
    source, sink, gate = desk.topic(1), desk.topic(1), desk.folder / "gate"
    gate.mkdir()
    desk.send(source, ("k", "v"))
    spec = desk.spec("copy", source, sink, sink_topic=sink, waits_at=str(gate))
    reader = f"reader_{desk.folder.name}"
    chain = {spec.name: Link(sink, (source,), 1), reader: Link("", (sink,), 1)}
    upstream = runtime.session.sparkContext._jvm.ksql.Progress.upstream
    for _ in range(2):
        running = start(replace(spec, chain=chain))
        await_true("its batch has begun", (gate / "reached").exists)
        assert set(upstream(reader, FAR_MS)) == {spec.name}
        running.stop(graceful=False)
        assert running.half_done()
        assert set(upstream(reader, FAR_MS)) == set()
        (gate / "reached").unlink()


def test_a_query_with_more_than_a_batch_may_have_has_not_processed_all(runtime, desk, start):
    """It had: it says how far it is when the first of its batches is done."""
    source, sink, gate = desk.topic(1), desk.topic(1), desk.folder / "gate"
    gate.mkdir()
    spec = desk.spec("copy", source, sink, sink_topic=sink, max_records=10, waits_at=str(gate))
    reader = f"reader_{desk.folder.name}"
    chain = {spec.name: Link(sink, (source,), 1), reader: Link("", (sink,), 1)}
    start(replace(spec, chain=chain))
    upstream = runtime.session.sparkContext._jvm.ksql.Progress.upstream

    def until():
        return dict(upstream(reader, 0))[spec.name].until()

    await_true("there is nothing to do", lambda: until() == ALL)
    written = producer(desk)  # so that they are there all at once
    for second in range(60):
        written.produce(source, b"v", b"k", 0, timestamp=1_000_000 + second * 1000)
    written.commit_transaction()
    await_true("its batch has begun", (gate / "reached").exists)
    assert until() == NOTHING
    (gate / "open").touch()
    await_true("all batches are done", lambda: until() == ALL)


def test_a_record_far_ahead_that_was_read_is_not_where_the_query_is(runtime, desk, start):
    """The query waits all the same for one upstream, and takes what is older than that one."""
    stream, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    for second in (900, 901, 5_000, 902, 903):
        desk.send(stream, ("k", f"{second}"), timestamp=second * 1000)
    spec, upstream = reader_of(desk, stream, between, sink)
    reading = start(spec)
    await_true("it has looked at its source", reading.has_started)
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    progress.planned(upstream, FAR_MS, None)
    await_true("what there is is read", lambda: len(desk.read_beside(sink)) == 5)
    progress.planned(upstream, 1_000_000, None)
    desk.send(stream, ("k", "read"), timestamp=980_000)
    await_true("it looks again", lambda: len(desk.read_beside(sink)) == 6)
    desk.send(stream, ("k", "older"), timestamp=990_000)
    desk.send(stream, ("k", "later"), timestamp=1_200_000)
    desk.send(between, ("k", "older"), timestamp=950_000)
    await_true("what is older is read", lambda: len(desk.read_beside(sink)) == 8)
    assert [row["value"] for row in desk.values(sink)][6:] == ["older"] * 2
    progress.planned(upstream, FAR_MS, None)
    assert reading.await_idle(desk.ends(stream, between))
    assert desk.values(sink)[-1]["value"] == "later"


def writers_of(desk, stream, between, sink):
    """A query that reads what two others write; and their names."""
    spec, one = reader_of(desk, stream, between, sink)
    other = f"other_{desk.folder.name}"
    return replace(spec, chain={**spec.chain, other: Link(between, ("none",), begun=1)}), one, other


def begun_within_a_batch(jvm, desk, start, spec, writer):
    """A reader that has looked at its source, and where the batch begins that its writer is in."""
    name, topic = writer
    reading = start(spec)
    await_true("it has looked at its source", reading.has_started)
    before = ends_in_java(jvm, desk, topic)
    jvm.ksql.Progress.planned(name, 5_000_000, None)
    jvm.ksql.Progress.planned(name, 6_000_000, before)
    return reading, before


def test_another_topic_does_not_overtake_where_one_of_two_writers_is_in_a_batch(
    runtime, desk, start
):
    """The reader ends where that batch begins: what the other one has written later is not seen."""
    stream, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    spec, one, other = writers_of(desk, stream, between, sink)
    jvm, now_ms = runtime.session.sparkContext._jvm, int(time.time() * 1000)
    progress = jvm.ksql.Progress
    reading, before = begun_within_a_batch(jvm, desk, start, spec, (one, between))
    progress.planned(other, 1_000_000, before)
    progress.done(other, before, True, now_ms)
    progress.planned(other, 2_000_000, before)
    desk.send(between, ("k", "of the other"), timestamp=1_100_000)
    progress.done(other, ends_in_java(jvm, desk, between), True, now_ms)
    desk.send(stream, ("k", "earlier"), timestamp=900_000)
    desk.send(stream, ("k", "later"), timestamp=1_500_000)
    await_true("what is earlier is read", lambda: len(desk.read_beside(sink)) == 1)
    assert desk.values(sink)[0]["value"] == "earlier"
    progress.done(one, ends_in_java(jvm, desk, between), True, now_ms)
    assert reading.await_idle(desk.ends(stream, between))
    assert len(desk.read(sink)) == 3


def test_transactions_of_two_writers_do_not_hold_up_their_reader(runtime, desk, start):
    """One is always open, so that the last batch of the other one is never seen."""
    stream, between, sink = desk.topic(1), desk.topic(1), desk.topic(1)
    spec, one, other = writers_of(desk, stream, between, sink)
    jvm, now_ms = runtime.session.sparkContext._jvm, int(time.time() * 1000)
    progress = jvm.ksql.Progress
    reading, before = begun_within_a_batch(jvm, desk, start, spec, (one, between))
    pending = producer(desk)
    pending.produce(between, b"pending", partition=0, timestamp=1_100_000)
    pending.flush()
    for until, ends in ((1_000_000, before), (2_000_000, ends_in_java(jvm, desk, between))):
        progress.planned(other, until, before)
        progress.done(other, ends, True, now_ms)
    desk.send(stream, ("k", "earlier"), timestamp=900_000)
    desk.send(stream, ("k", "later"), timestamp=1_500_000)
    await_true("what is earlier is read", lambda: len(desk.read_beside(sink)) == 1)
    assert desk.values(sink)[0]["value"] == "earlier"
    pending.commit_transaction()
    progress.done(one, ends_in_java(jvm, desk, between), True, now_ms)
    progress.planned(other, FAR_MS, None)
    desk.settle(between)
    assert reading.await_idle(desk.ends(stream, between))
    assert len(desk.read(sink)) == 3


def test_a_topic_with_the_brokers_times_is_read_by_these(runtime, desk, start):
    """Its results are later than all that their query has processed, until that is everything."""
    stream, sink, between = desk.topic(1), desk.topic(1), f"t-{uuid.uuid4().hex[:8]}"
    desk.admin.create(Topic(between, 1, configs={"message.timestamp.type": "LogAppendTime"}))
    spec, upstream = reader_of(desk, stream, between, sink)
    reading = start(spec)
    await_true("it has looked at its source", reading.has_started)
    progress = runtime.session.sparkContext._jvm.ksql.Progress
    progress.planned(upstream, 1_000_000, None)
    desk.send(between, ("k", "of the query"), timestamp=900_000)
    desk.send(stream, ("k", "earlier"), timestamp=950_000)
    await_true("what is earlier is read", lambda: len(desk.read_beside(sink)) == 1)
    assert desk.values(sink)[0]["value"] == "earlier"
    progress.planned(upstream, ALL, None)
    assert reading.await_idle(desk.ends(stream, between))
    assert len(desk.read(sink)) == 2
