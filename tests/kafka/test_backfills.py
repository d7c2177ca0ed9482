"""An aggregate is added and computed from what Kafka has; the others keep their state."""

from __future__ import annotations

import contextlib
import sys

import httpx
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kafka.rebuild_crashes import BACKFILL
from tests.kafka.records import create_topic, produce, read_all, topics, unique
from tests.kafka.servers import EARLIEST, ServerProcess, hosted
from tests.waits import PATIENCE_S, await_true

RECORDS = [("a", {"N": n}) for n in range(10)] + [("b", {"N": 1})] * 3
LATER = [("a", {"N": 100}), ("c", {"N": 5})]
OLD = {"a": {"C": 11}, "b": {"C": 3}, "c": {"C": 1}}
NEW = {"a": {"C": 11, "T": 100}, "b": {"C": 3, "T": 0}, "c": {"C": 1, "T": 5}}
WAITING = EARLIEST | {"ksql.upgrade.wait.ms": "60000"}
CHANGES = pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"processing.guarantee": "exactly_once_v2"}, id="exactly once"),
        pytest.param(
            {"cache.max.bytes.buffering": "0"},
            id="at least once, every change",
            marks=pytest.mark.proof,
        ),
    ],
)


def lose_records(bootstrap, topic, partitions):
    """Delete all records that are there, as retention would."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    places = [TopicPartition(topic, partition, -1) for partition in range(partitions)]
    for done in admin.delete_records(places).values():
        done.result(PATIENCE_S)


def rows(bootstrap, topic):
    """The last value of each key; keys that are gone are left out."""
    last = {seen.key: seen.value for seen in read_all(bootstrap, topic)}
    return {key: value for key, value in last.items() if value is not None}


def backfill(source, table, start=""):
    return (
        f"CREATE OR REPLACE TABLE {table} WITH (REPLACE_MODE='backfill'{start}) AS "
        f"SELECT K, COUNT(*) AS C, SUM(N) AS T FROM {source} GROUP BY K;"
    )


@CHANGES
def test_a_count_knows_records_that_kafka_has_lost(server, http, settings):
    bootstrap, partitions = server.bootstrap, 4
    source, table = unique("src").upper(), unique("cnt").upper()
    create_topic(bootstrap, source, partitions)
    http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;",
        EARLIEST | settings,
    )
    for partition, name in enumerate("abc"):
        produce(bootstrap, source, [r for r in RECORDS if r[0] == name], partition=partition)
    await_true("the first rows", lambda: rows(bootstrap, table) == {"a": {"C": 10}, "b": {"C": 3}})
    lose_records(bootstrap, source, partitions)
    produce(bootstrap, source, LATER[:1])
    produce(bootstrap, source, LATER[1:], partition=2)
    await_true("the old rows", lambda: rows(bootstrap, table) == OLD)
    refused = http.refused(backfill(source, table), WAITING | settings)
    assert "have lost their beginning" in refused["message"]
    before = len(read_all(bootstrap, table))
    answer = http.one(backfill(source, table, ", START_MODE='earliest'"), WAITING | settings)
    assert answer["commandStatus"]["message"].startswith("Backfill of ")
    assert not answer.get("warnings")
    await_true("the new rows", lambda: rows(bootstrap, table) == NEW)
    assert len(read_all(bootstrap, table)) - before == len(NEW)
    produce(bootstrap, source, [("b", {"N": 7})], partition=1)
    await_true("a later row", lambda: rows(bootstrap, table)["b"] == {"C": 4, "T": 7})
    upgrades = http.one(f"SHOW UPGRADES FOR {table};")["upgrades"]
    assert ("backfill", "switched") in [(seen["mode"], seen["status"]) for seen in upgrades]
    http.ksql(f"ROLLBACK UPGRADE OF {table};", WAITING | settings)
    former = {"a": {"C": 11}, "b": {"C": 4}, "c": {"C": 1}}
    await_true("the former rows", lambda: rows(bootstrap, table) == former)


@pytest.mark.proof
@pytest.mark.parametrize("point", BACKFILL)
def test_killed_in_a_backfill(broker, runtime, tmp_path, point):
    bootstrap, service_id = broker.bootstrap, unique("crash") + "_"
    source, table = unique("in").upper(), unique("cnt").upper()
    settings = EARLIEST | {"processing.guarantee": "exactly_once_v2"}
    create_topic(bootstrap, source)
    server = ServerProcess(
        tmp_path / "log",
        [sys.executable, "-m", "tests.kafka.rebuild_crashes", point],
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=service_id,
        bootstrap__servers=bootstrap,
        ksql__spark__master="local[2]",
    )
    family = server.family()
    server.http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        f"CREATE TABLE {table} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;",
        settings,
    )
    produce(bootstrap, source, RECORDS)
    await_true("the first rows", lambda: "b" in rows(bootstrap, table))
    lose_records(bootstrap, source, 1)
    produce(bootstrap, source, LATER)
    await_true("the old rows", lambda: rows(bootstrap, table) == OLD)
    with contextlib.suppress(httpx.TransportError):
        server.http.ksql(backfill(source, table, ", START_MODE='earliest'"), settings)
    server.await_crash(family)
    assert rows(bootstrap, table) == OLD
    produce(bootstrap, source, [("b", {"N": 7})])
    with hosted(bootstrap, runtime, tmp_path / "state", service_id) as http:
        expected = NEW | {"b": {"C": 4, "T": 7}}
        await_true("the new rows", lambda: rows(bootstrap, table) == expected)
        [query_id] = http.queries()
        hidden = f"query_{query_id}-v"
        former = f"{hidden}0-changelog"
        await_true(
            "no hidden topic but the former version's",
            lambda: {n[n.index(hidden) :] for n in topics(bootstrap) if hidden in n} == {former},
        )
