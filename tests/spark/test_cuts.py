"""Random queries on Spark, fed step by step: the results of one micro-batch in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from ksql.base.records import OutRecord
from ksql.catalog.topic import Topic
from ksql.dataflow.load import load
from tests.cuts.cases import merged, pieces
from tests.cuts.chance import cases
from tests.cuts.run import planned, run

pytestmark = pytest.mark.proof

RUNS, FIRST = 50, 30_000
HOUR_MS = 3_600_000


def per_key(records: Iterable[OutRecord], *, ordered: bool) -> dict[bytes | None, list[Any]]:
    """The results of each key; partitions of a result have no order among them."""
    found: dict[bytes | None, list[Any]] = {}
    for key, value, timestamp, _ in records:
        found.setdefault(key, []).append((timestamp, value or b""))
    for key, results in found.items():
        if key is None or not ordered:
            results.sort()
    return found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
def test_steps_on_spark_give_the_results_of_one_batch(desk, start, seed):
    """The query rests while a step is written, so that each batch is all of a step."""
    tag, start_ms = uuid.uuid4().hex[:8].upper(), int(time.time() * 1000) // HOUR_MS * HOUR_MS
    (made,) = cases(seed, 1, tag=tag, start_ms=start_ms - HOUR_MS, densities=(0.05, 0.1))
    query, program = planned(made)
    for name in (*program.topics, made.sink):
        desk.admin.create(Topic(name, made.partitions))
    spec = replace(
        desk.spec("copy", program.topics, made.sink),
        plan_json=query.plan,
        stages=program.stages,
        partitions=made.buckets,
        sink_topic=made.sink,
        loader=load,
    )
    events = merged(made.events, program.topics)
    for piece in pieces(events):
        for event in piece:
            desk.sender.send(
                event.topic,
                event.key_bytes,
                event.value_bytes,
                timestamp=event.timestamp,
                partition=event.partition,
            )
        desk.sender.flush()
        running = start(spec)
        assert running.await_idle(desk.ends(*program.topics)), running.status()
        running.stop(graceful=True)
    wanted = run(program, [events], made.buckets).records
    # tasks that read several partitions side by side write under other keys in any order
    ordered = made.shape != "moved"
    found = [(each.key, each.value, each.timestamp, None) for each in desk.read(made.sink)]
    assert per_key(found, ordered=ordered) == per_key(wanted, ordered=ordered), "\n".join(
        [f"seed {seed}", *made.statements, *map(str, events)]
    )
