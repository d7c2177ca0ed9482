"""Where windowed results lie in Kafka: with their key, or as a query's first version had them."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace

import pytest

from ksql.control.engine.changes import PutQuery
from ksql.control.log.record import decode
from ksql.core.types.windowed import WindowedKeys
from ksql.exec.dataflow import has_one_writer, plan_of
from ksql.exec.dataflow.load import load
from ksql.sql.catalog.model import Topic
from ksql.sql.plan import codec
from ksql.sql.plan.walk import with_sources
from tests.stored.corpora import V1, V2
from tests.stored.lines import read_lines
from tests.unit.control.engine.earlier import earlier
from tests.unit.world import World

PARTITIONS = 3
KEYS = [f"key {n}" for n in range(12)]
DAY_MS = 86_400_000
DECLARED = "WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', PARTITIONS=3);"
TUMBLING = "WINDOW TUMBLING (SIZE 10 SECONDS)"
OF_WINDOWS = "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');"


@pytest.fixture
def tag():
    return uuid.uuid4().hex[:8].upper()


@pytest.fixture
def base():
    return int(time.time() * 1000) // 60_000 * 60_000 - 5 * DAY_MS


def hosted(desk, start, plan, name, **more):
    """Run a plan until it has read all that is there."""
    program = load(plan)
    there = desk.admin.topics()
    for topic in (*program.topics, program.sink_topic):
        if topic not in there:
            desk.admin.create(Topic(topic, PARTITIONS))
    spec = replace(
        desk.spec("copy", program.topics, program.sink_topic, name=name),
        plan_json=plan,
        stages=program.stages,
        partitions=2,
        sink_topic=program.sink_topic,
        loader=load,
        **more,
    )
    running = start(spec)
    assert running.await_idle(desk.ends(*program.topics)), running.status()
    running.stop(graceful=True)
    return desk.read(program.sink_topic)


def fed(desk, topic, *times):
    for at in times:
        for key in KEYS:
            desk.sender.send(topic, key.encode(), b'{"N": 1}', timestamp=at)
    desk.sender.flush()


def chosen(desk, keys):
    """The partition that a plain producer chooses for each key."""
    topic = desk.topic(PARTITIONS)
    for key in keys:
        desk.sender.send(topic, key, b"v")
    desk.sender.flush()
    return {record.key: record.partition for record in desk.read(topic)}


def inner(record, size_ms=1):
    return WindowedKeys(size_ms).split(record.key)[0]


@pytest.mark.parametrize(
    ("window", "size_ms"),
    [
        (TUMBLING, 10_000),
        ("WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)", 10_000),
        ("WINDOW SESSION (5 SECONDS)", None),
    ],
)
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_windows_lie_with_their_key(desk, start, tag, base, window, size_ms, guarantee):
    world = World(
        f"CREATE STREAM S{tag} (K STRING KEY, N INT) " + DECLARED.format(name=f"s{tag}"),
        f"CREATE TABLE W{tag} AS SELECT K, COUNT(*) AS C FROM S{tag} {window} GROUP BY K;",
    )
    desk.admin.create(Topic(f"s{tag}", PARTITIONS))
    fed(desk, f"s{tag}", base, base + 20_000, base + 40_000, base + 60_000)
    exact = guarantee == "exactly_once_v2"
    plan = world.query(f"W{tag}").plan
    records = hosted(desk, start, plan, "w", exactly_once=exact)
    windows = {(inner(each, size_ms), each.key) for each in records}
    assert len(windows) >= 4 * len(KEYS)
    expected = chosen(desk, [key.encode() for key in KEYS])
    assert set(expected.values()) == set(range(PARTITIONS))
    assert {(inner(each, size_ms), each.partition) for each in records} == set(expected.items())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE W{tag} AS SELECT K, COUNT(*) AS C FROM S{tag} GROUP BY K;",
        "CREATE STREAM W{tag} AS SELECT K, N FROM S{tag} PARTITION BY K;",
    ],
)
def test_keys_stay_if_the_result_is_given_partitions(desk, start, tag, base, statement):
    """Each partition has one writer, whose part of the state depends on how many there were."""
    world = World(
        f"CREATE STREAM S{tag} (I INT KEY, K STRING, N INT) " + DECLARED.format(name=f"s{tag}"),
        statement.format(tag=tag),
    )
    desk.admin.create(Topic(f"s{tag}", PARTITIONS))
    plan = plan_of(world.query(f"W{tag}"))
    assert has_one_writer(plan)
    more = {"moved": plan.placement == "moved", "result_partitions": plan.partitions}
    rows = [json.dumps({"K": key, "N": 1}).encode() for key in KEYS]

    def results():
        for row in rows:
            desk.sender.send(f"s{tag}", None, row, timestamp=base)
        desk.sender.flush()
        return hosted(desk, start, world.query(f"W{tag}").plan, "w", **more)

    results()
    desk.grow(f"W{tag}", 2 * PARTITIONS)
    records = results()
    assert len(records) == 2 * len(KEYS)
    expected = chosen(desk, [key.encode() for key in KEYS])
    assert {(record.key, record.partition) for record in records} == set(expected.items())


def frozen(place, query_id):
    """The last plan of a frozen query."""
    plans = [
        change.query.plan
        for line in read_lines(place / "commands.jsonl")
        for change in decode(0, line["key"].encode(), line["value"].encode()).changes
        if isinstance(change, PutQuery) and change.query.id == query_id
    ]
    return plans[-1]


def over(plan, source, sink):
    """The stored plan over other topics."""
    stored = codec.loads(plan)
    below = with_sources(stored.sink.source, lambda each: replace(each, topic=source))
    return codec.dumps(replace(stored, sink=replace(stored.sink, source=below, topic=sink)))


def test_a_query_of_an_earlier_version_places_its_windows_as_before(desk, start, tag, base):
    first, second = (frozen(place, "CTAS_W4_4") for place in (V1 / "windows", V2 / "gathered"))
    assert first != second
    source, sink = f"s{tag}", f"w{tag}"
    desk.admin.create(Topic(source, PARTITIONS))
    fed(desk, source, base, base + 20_000, base + 40_000)
    before = hosted(desk, start, over(first, source, sink), "w")
    assert len(before) == 2 * len(KEYS)
    fed(desk, source, base + 60_000)
    after = hosted(desk, start, over(second, source, sink), "w")
    assert len(after) == 3 * len(KEYS)
    assert {"X" in json.loads(each.value) for each in after} == {True, False}
    expected = chosen(desk, [each.key for each in after])
    assert {each.key: each.partition for each in after} == expected
    places = {(inner(each, None), each.partition) for each in after}
    assert len(places) > len(KEYS)


@pytest.mark.parametrize("old", [(), ("V",), ("V", "W")])
def test_topics_of_windowed_tables_meet_as_streams(desk, start, tag, base, old):
    """Of two tables, of which earlier versions may have made some."""
    names = {name: f"{name}{tag}" for name in ("V", "W")}
    world = World()
    for name, table in names.items():
        world.run(
            f"CREATE STREAM S{table} (K STRING KEY, N INT) " + DECLARED.format(name=f"s{table}")
        )
        world.run(
            f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM S{table} {TUMBLING} GROUP BY K;"
        )
        if name in old:
            earlier(world, table)
        world.run(
            f"CREATE STREAM O{table} (K STRING KEY, C BIGINT) "
            f"WITH (KAFKA_TOPIC='{table}', VALUE_FORMAT='JSON', {OF_WINDOWS}"
        )
    v, w = (f"O{table}" for table in names.values())
    world.run(
        f"CREATE STREAM J{tag} AS SELECT {v}.K, {v}.C AS VC, {w}.C AS WC FROM {v} "
        f"JOIN {w} WITHIN 1 HOUR ON {v}.K = {w}.K;"
    )
    assert world.catalog.scattered == {names[name] for name in old}
    for name, table in names.items():
        desk.admin.create(Topic(f"s{table}", PARTITIONS))
        fed(desk, f"s{table}", base, base + 20_000, base + 40_000)
        hosted(desk, start, world.query(table).plan, name)
    query = hosted(desk, start, world.query(f"J{tag}").plan, "j")
    assert sorted(each.key for each in query) == sorted(each.key for each in desk.read(names["V"]))
    assert len(query) == 3 * len(KEYS)
    expected = chosen(desk, [key.encode() for key in KEYS])
    assert {(inner(each), each.partition) for each in query} == set(expected.items())
