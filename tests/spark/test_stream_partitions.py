"""Stream time of each partition on Spark: one that lags is not late, nor after a restart."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from dataclasses import replace

import pytest

from ksql.exec.dataflow.load import load
from ksql.sql.catalog.model import Topic
from tests.cuts.cases import Event
from tests.cuts.run import run
from tests.unit.world import World

PARTITIONS = 3
WINDOW = "WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 1 HOUR, GRACE PERIOD 5 SECONDS)"
QUERIES = {
    "kept": f"SELECT K, COUNT(*) AS C FROM S{{tag}} {WINDOW} GROUP BY K",
    "moved": f"SELECT G, COUNT(*) AS C FROM S{{tag}} {WINDOW} GROUP BY G EMIT FINAL",
    "combined": f"SELECT K, COUNT(*) AS C FROM S{{tag}} {WINDOW} GROUP BY K",
    "expiring": "SELECT K, COUNT(*) AS C FROM S{tag} GROUP BY K",
}
OPTIONS = {"expiring": " WITH (RETENTION_MS=15000)"}
CACHES = {"combined": "1000"}
"""What a query may hold back: 0 gives every change, else there is one per window and step."""
LATE = {"kept": (7, 3), "moved": (2, 2), "combined": (6, 3), "expiring": (12, 0)}
"""How many results there are, and late records."""
# topic's partition, key, group and second of the records of each step
STEPS = [
    [(0, "a", "x", 100), (1, "b", "y", 0), (0, "a", "x", 101)],
    [(1, "b", "y", 1), (0, "a", "x", 2), (2, "c", "x", 40)],
    [(1, "b", "z", 30), (1, "b", "y", 2), (2, "c", "x", 200), (2, "c", "y", 41)],
]


@pytest.mark.parametrize("name", QUERIES)
def test_each_partition_has_its_own_time(desk, start, name):
    tag, base = uuid.uuid4().hex[:8].upper(), int(time.time() * 1000) // 60_000 * 60_000 - 3_600_000
    source, sink = f"S{tag}", f"OUT{tag}"
    world = World(
        f"CREATE STREAM {source} (K STRING KEY, G STRING) WITH (KAFKA_TOPIC='{source}', "
        f"VALUE_FORMAT='JSON', PARTITIONS={PARTITIONS});",
        f"CREATE TABLE {sink}{OPTIONS.get(name, '')} AS {QUERIES[name].format(tag=tag)};",
        **{"cache.max.bytes.buffering": CACHES.get(name, "0")},
    )
    query = world.query(sink)
    program = load(query.plan)
    assert program.combined_windows == (name in {"moved", "combined"})
    for topic in (source, sink):
        desk.admin.create(Topic(topic, PARTITIONS))
    spec = replace(
        desk.spec("copy", program.topics, sink),
        plan_json=query.plan,
        stages=program.stages,
        partitions=2,
        sink_topic=sink,
        loader=load,
    )
    steps = [
        [
            Event(source, place, key, {"G": group}, base + 1000 * at)
            for place, key, group, at in step
        ]
        for step in STEPS
    ]
    for step in steps:
        for event in step:
            desk.sender.send(
                source,
                event.key_bytes,
                event.value_bytes,
                timestamp=event.timestamp,
                partition=event.partition,
            )
        desk.sender.flush()
        running = start(spec)
        assert running.await_idle(desk.ends(source)), running.status()
        running.stop(graceful=True)
    counts = Counter((each.key, each.value, each.timestamp) for each in desk.read(sink))
    expected = run(program, steps, 2)
    assert counts == Counter((key, value, at) for key, value, at, _ in expected.records)
    # of each partition one record is late, measured by its own time; moved, they meet others
    assert (len(expected.records), len(expected.errors)) == LATE[name]
