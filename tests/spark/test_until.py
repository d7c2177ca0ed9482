"""A query with an end takes batches up to exactly there, and none afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.spark.checkpoint.checkpoint import committed, last_committed
from ksql.spark.query.spec import Link, State
from tests.waits import PATIENCE_S, await_true

CHAINS = [
    pytest.param({}, id="alone"),
    pytest.param({"chain": {"other": Link("elsewhere", ("nothing",), 1)}}, id="among others"),
]


def pairs(first, count):
    return [(f"k{n}", f"v{n}") for n in range(first, first + count)]


@pytest.mark.parametrize("more", CHAINS)
@pytest.mark.parametrize("by", ["workers", "spark"])
def test_it_ends_there_and_continues_without_an_end(desk, start, by, more):
    source, apart, sink = desk.topic(), desk.topic(), desk.topic()
    reader = desk.by_workers if by == "workers" else None
    spec = desk.spec("copy", [source, apart], sink, reader=reader, trigger_ms=10, **more)
    desk.send(source, *pairs(0, 40))
    until = desk.ends(source)
    desk.send(source, *pairs(40, 20))
    desk.send(apart, *pairs(100, 5))
    ended = start(replace(spec, until=until, max_records=15))
    assert ended.await_idle(until, PATIENCE_S)
    desk.send(source, *pairs(60, 20))
    await_true("it looks again", ended.has_started)
    batch = last_committed(spec.checkpoint)
    assert ended.end_between_batches(PATIENCE_S)
    position = committed(spec.checkpoint)
    assert position is not None
    assert position.batch == batch
    assert position.offsets == {**until, apart: {0: 0, 1: 0}}
    assert not ended.half_done()
    assert sorted(row["value"] for row in desk.values(sink)) == sorted(f"v{n}" for n in range(40))
    ended.stop()
    whole = start(spec)
    assert whole.await_idle(desk.ends(source, apart), PATIENCE_S)
    assert len(desk.read(sink)) == 85


def test_an_end_that_is_reached_already_needs_no_batch(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, *pairs(0, 10))
    spec = desk.spec("copy", source, sink, trigger_ms=10)
    first = start(spec)
    assert first.await_idle(desk.ends(source), PATIENCE_S)
    first.stop()
    until, batch = desk.ends(source), last_committed(spec.checkpoint)
    desk.send(source, *pairs(10, 10))
    ended = start(replace(spec, until=until))
    await_true("it has looked", ended.has_started)
    assert ended.status().state is State.RUNNING
    assert ended.end_between_batches(PATIENCE_S)
    assert last_committed(spec.checkpoint) == batch
    assert len(desk.read(sink)) == 10


@pytest.mark.parametrize("kind", ["copy", "count"])
def test_the_end_of_one_that_runs_can_be_moved(desk, start, runtime, kind):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, *pairs(0, 10))
    at = desk.ends(source)
    spec = replace(desk.spec(kind, source, sink, trigger_ms=10), until=at)
    query = start(spec)
    assert query.await_idle(at, PATIENCE_S)
    desk.send(source, *pairs(10, 10))
    moved = desk.ends(source)
    desk.send(source, *pairs(20, 10))
    batch = last_committed(spec.checkpoint)
    try:
        runtime.end_at(spec.name, moved)
        assert query.await_idle(moved, PATIENCE_S)
        assert query.end_between_batches(PATIENCE_S)
        position = committed(spec.checkpoint)
        assert position is not None
        assert position.offsets == moved
        assert position.batch > (batch or 0)
        assert len(desk.read(sink)) == 20
    finally:
        runtime.end_at(spec.name, None)
