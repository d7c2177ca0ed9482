"""Results of Kafka Streams that are kept, on Spark: all records in one micro-batch."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from ksql.catalog.topic import Topic
from ksql.dataflow.load import load
from tests.streams import kept, ours
from tests.streams.compare import plain
from tests.streams.shapes import statements
from tests.unit.world import World

pytestmark = pytest.mark.proof


def suits(case):
    """Who finds all records at once takes them in one order; time 0 has another client's ways."""
    return case == case.in_turn and all(time for *_, time in case.records)


CASES = [each for each in kept.every() if suits(each.case)]


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.why)
def test_results_are_those_of_kafka_streams(desk, start, each):
    tag, given = uuid.uuid4().hex[:8], each.case.given
    world = World(**ours.EVERY_CHANGE)
    world.run(statements(given, tag))
    query, sink = world.query("OUT"), f"OUT{tag}"
    program = world.runner.running[query.id].program
    for name in (*program.topics, sink):
        desk.admin.create(Topic(name, 1))
    for topic, key, row, time in each.case.records:
        data = None if row is None else json.dumps(row).encode()
        key_bytes = None if key is None else key.encode()
        desk.sender.send(f"{topic}{tag}", key_bytes, data, timestamp=time, partition=0)
    desk.sender.flush()
    spec = replace(
        desk.spec("copy", program.topics, sink),
        plan_json=query.plan,
        stages=program.stages,
        partitions=1,
        sink_topic=sink,
        loader=load,
    )
    running = start(spec)
    assert running.await_idle(desk.ends(*program.topics)), running.status()
    found = [ours.result(given, r.key, r.value, r.timestamp) for r in desk.read(sink)]
    assert plain(found) == plain(each.results)
