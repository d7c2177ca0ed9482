"""Results of Kafka Streams that are kept, on Spark: all records in one micro-batch.

Topics have one partition, or several.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from ksql.exec.dataflow.load import load
from ksql.sql.catalog.model import Topic
from tests.streams import kept, ours
from tests.streams.cases import key_bytes
from tests.streams.compare import plain
from tests.streams.oracle import Result
from tests.streams.partitions import in_sequence
from tests.streams.shapes import statements
from tests.unit.world import World

pytestmark = pytest.mark.proof


def suits(case):
    """Who finds all records at once takes them in one order; time 0 has another client's ways."""
    return case == case.in_sequence and all(time for *_, time in case.records)


CASES = [each for each in kept.of_one_partition() if suits(each.case)]


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.why)
def test_results_are_those_of_kafka_streams(desk, start, each):
    ours_written = written(desk, start, each.case)
    given = each.case.given
    results = [ours.result(given, r.key, r.value, r.timestamp) for r in ours_written]
    assert plain(results) == plain(each.results)


def written(desk, start, case):
    """What Spark writes: all records of a case are there before it starts."""
    tag, given = uuid.uuid4().hex[:8], case.given
    count = given.get("partitions", 1)
    world = World(**ours.EVERY_CHANGE)
    world.run(statements(given, tag))
    query, sink = world.query("OUT"), f"OUT{tag}"
    program = world.runner.running[query.version].program
    for name in (*program.topics, sink):
        desk.admin.create(Topic(name, count))
    for topic, key, row, time, *place in case.records:
        data = None if row is None else json.dumps(row).encode()
        key_data = None if key is None else key_bytes(given, topic, key)
        at = place[0] if place else 0
        desk.sender.send(f"{topic}{tag}", key_data, data, timestamp=time, partition=at)
    desk.sender.flush()
    spec = replace(
        desk.spec("copy", program.topics, sink),
        plan_json=query.plan,
        stages=program.stages,
        partitions=count if program.laned else 1,
        sink_topic=sink,
        loader=load,
    )
    running = start(spec)
    assert running.await_idle(desk.ends(*program.topics)), running.status()
    return desk.read(sink)


def suits_spread(case):
    """As ``suits``, and in the order of one micro-batch over all partitions."""
    return case == in_sequence(case) and all(record[3] for record in case.records)


SPREAD = [each for each in kept.over_partitions() if suits_spread(each.case)]


@pytest.mark.parametrize("each", SPREAD, ids=lambda each: each.why)
def test_results_are_in_the_partitions_of_kafka_streams(desk, start, each):
    given = each.case.given
    ours_by_partition = by_partition(
        (None if r.key is None else r.partition, ours.result(given, r.key, r.value, r.timestamp))
        for r in written(desk, start, each.case)
    )
    expected = by_partition((place, tuple(result)) for *result, _, place in each.results)
    if any(lane != place for *_, lane, place in each.results):  # those of several tasks meet
        for results in (*ours_by_partition.values(), *expected.values()):
            results.sort(key=repr)
    assert ours_by_partition == expected


def by_partition(results):
    """The results in each partition; what has no key may be in any."""
    grouped: dict[int | None, list[Result]] = {}
    for place, result in results:
        grouped.setdefault(place, []).extend(plain([result]))
    return grouped
