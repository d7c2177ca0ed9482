"""A query ends its batches where those whose results it reads have finished theirs."""

from __future__ import annotations

from tests.spark.upstream import FAR_MS, ends_in_java, reader_of
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
    progress.done(upstream, None, 0)
    assert reading.await_idle(desk.ends(stream, between))
    assert len(desk.read(sink)) == 3
