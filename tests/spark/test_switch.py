"""Stopping between batches and taking over a checkpoint with another program."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import Any

import pytest

from ksql.spark.checkpoint.checkpoint import committed
from ksql.spark.query.spec import State

pytestmark = pytest.mark.proof


@contextmanager
def load(desk, topic):
    """Records keep coming; gives the number of them when it is over."""
    ended, sent = threading.Event(), [0]

    def produce():
        while not ended.is_set():
            desk.send(topic, *((f"k{n % 7}", str(sent[0] + n)) for n in range(50)))
            sent[0] += 50

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


def await_batches(query, count):
    begin = committed(query.place.checkpoint)
    first = begin.batch if begin else -1
    while query.status().state is State.RUNNING:
        now = committed(query.place.checkpoint)
        if now and now.batch >= first + count:
            return
    pytest.fail(query.status().last_error or "the query ended")


@pytest.mark.parametrize("rounds", [3])
def test_a_switch_under_load_loses_and_repeats_nothing(desk, start, rounds):
    source, sink = desk.topic(), desk.topic()
    query: Any = None
    with load(desk, source) as sent:
        for tag in range(rounds):
            query = start(desk.spec("copy", source, sink, tag=tag, slow_s=0.2))
            await_batches(query, 3)
            if tag < rounds - 1:
                query.stop()
    assert query.await_idle(desk.ends(source))
    outputs = desk.values(sink)
    assert sorted(int(v["value"]) for v in outputs) == list(range(sent[0]))
    by_partition = defaultdict(list)
    for value in outputs:
        by_partition[value["partition"]].append((value["offset"], value["tag"]))
    for seen in by_partition.values():
        tags = [tag for _, tag in sorted(seen)]
        assert tags == sorted(tags)  # one offset separates the old plan from the new
        assert set(tags) == set(range(rounds))


def test_counts_continue_across_a_switch_under_load(desk, start):
    source, sink = desk.topic(), desk.topic()
    with load(desk, source) as sent:
        query = start(desk.spec("count", source, sink, tag=0))
        await_batches(query, 3)
        query.stop()
        query = start(desk.spec("count", source, sink, tag=1, last=True))
        await_batches(query, 2)
    assert query.await_idle(desk.ends(source))
    counts = defaultdict(list)
    for record in desk.read(sink):
        counts[record.key].append(json.loads(record.value))
    assert sum(map(len, counts.values())) == sent[0]
    for seen in counts.values():
        assert [value["n"] for value in seen] == list(range(1, len(seen) + 1))
        tags = [value["tag"] for value in seen]
        assert tags == sorted(tags)
        assert all("last" in value for value in seen if value["tag"] == 1)


def test_a_plan_that_does_not_compile_is_reported_and_the_old_one_continues(desk, start):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, ("k", "1"))
    query = start(desk.spec("copy", source, sink, tag="old"))
    assert query.await_idle(desk.ends(source))
    query.stop()
    desk.send(source, ("k", "2"))
    broken = start(desk.spec("broken", source, sink))
    status = broken.await_started()
    assert status.state is State.ERROR
    assert status.last_error == "this plan cannot be compiled"
    broken.stop()
    again = start(desk.spec("copy", source, sink, tag="old"))
    assert again.await_idle(desk.ends(source))
    assert [value["value"] for value in desk.values(sink)] == ["1", "2"]


def test_new_partitions_are_read_from_their_beginning(desk, start):
    source, sink = desk.topic(1), desk.topic()
    desk.send(source, ("k", "1"))
    query = start(desk.spec("count", source, sink))
    assert query.await_idle(desk.ends(source))
    desk.grow(source, 3)
    desk.send(source, *((f"k{n}", "x") for n in range(20)))
    assert query.await_idle(desk.ends(source))
    assert len(desk.read(sink)) == 21
