"""The servers as one of them knows them."""

from __future__ import annotations

import pytest

from ksql.app.cluster import ENABLED, Cluster, HeartbeatsOff, own_host
from ksql.base.config import Settings
from ksql.query.filling import Filled
from ksql.query.keeping import Keeping
from ksql.query.materialize import Materialized
from ksql.statements.cluster import HostStoreLags, LagInfo, StateStoreLags
from ksql.statements.entities import TopicPartition
from ksql.stores.memory import MemoryStore
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE TABLE PLAIN (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
"""


class Ends:
    """Where every partition of a topic ends."""

    def end_offsets(self, topics):
        return {(topic, number): 10 + number for topic in topics for number in range(2)}


class Tables:
    """One table's stores, each as far as it says."""

    def __init__(self, **positions):
        self.positions = positions

    def table(self, source):
        if source.name not in self.positions:
            return None
        parts = {
            number: Filled(
                place=(source.topic, number), store=MemoryStore(), commit_s=1.0, reached=position
            )
            for number, position in enumerate(self.positions[source.name])
        }
        return Materialized(source, Keeping("IN_MEMORY", None, 1_000), parts)


class Clock:
    def __init__(self):
        self.ms = 5_000

    def __call__(self):
        return self.ms


def cluster(clock=None, tables=None, **more):
    settings = Settings({ENABLED: "true", "listeners": "http://10.1.1.1:9000", **more})
    return Cluster(settings, Ends(), tables or Tables(), clock or Clock())


def test_the_lag_of_each_partition():
    world = World(SETUP)
    query = str(world.query("T").id)
    found = cluster(tables=Tables(T=(10, 4))).status(world.catalog).cluster_status
    [(host, status)] = found.items()
    assert (host, status.host_alive, status.last_status_update_ms) == ("10.1.1.1:9000", True, 5_000)
    held = status.active_standby_per_query[query]
    assert held.active_stores == ("T",)
    assert held.active_partitions == (TopicPartition("T", 0), TopicPartition("T", 1))
    assert (held.stand_by_stores, held.stand_by_partitions) == ((), ())
    lags = {"0": LagInfo(10, 10, 0), "1": LagInfo(4, 11, 7)}
    assert status.host_store_lags == HostStoreLags({f"{query}#T": StateStoreLags(lags)}, 5_000)


def test_a_store_that_holds_nothing_yet_lacks_all():
    world = World(SETUP)
    [status] = cluster(tables=Tables(T=(0,))).status(world.catalog).cluster_status.values()
    [store] = status.host_store_lags.state_store_lags.values()
    assert store.lag_by_partition == {"0": LagInfo(0, 10, 10)}


def test_a_table_that_is_not_followed_is_not_shown():
    world = World(SETUP)
    [status] = cluster().status(world.catalog).cluster_status.values()
    assert (status.active_standby_per_query, status.host_store_lags.state_store_lags) == ({}, {})


def test_others_live_as_long_as_they_are_heard():
    clock = Clock()
    found = cluster(clock, **{"ksql.heartbeat.window.ms": "100"})
    world = World(SETUP)
    lags = HostStoreLags({}, 3)
    found.heard("other:1")
    found.reported("other:1", lags)
    found.heard("10.1.1.1:9000")  # itself
    assert set(found.status(world.catalog).cluster_status) == {"10.1.1.1:9000", "other:1"}
    clock.ms += 100
    other = found.status(world.catalog).cluster_status["other:1"]
    assert (other.host_alive, other.last_status_update_ms, other.host_store_lags) == (
        True,
        5_000,
        lags,
    )
    clock.ms += 1
    assert not found.status(world.catalog).cluster_status["other:1"].host_alive


def test_the_longest_silent_is_forgotten_when_they_are_too_many():
    clock, world = Clock(), World(SETUP)
    found = cluster(clock)
    for number in range(1_002):
        clock.ms += 1
        found.heard(f"host:{number}")
    shown = set(found.status(world.catalog).cluster_status)
    assert len(shown) == 1_001
    assert {"host:0", "host:1"}.isdisjoint(shown)
    assert "host:1001" in shown


def test_without_heartbeats_nothing_is_known():
    found = cluster(**{ENABLED: "false"})
    for ask in (
        lambda: found.status(World(SETUP).catalog),
        lambda: found.heard("x:1"),
        lambda: found.reported("x:1", HostStoreLags()),
    ):
        with pytest.raises(HeartbeatsOff, match=r"ksql\.heartbeat\.enable is false"):
            ask()


@pytest.mark.parametrize(
    ("properties", "host"),
    [
        ({}, "127.0.0.1:8088"),
        ({"listeners": "https://a.example:1,http://b:2"}, "a.example:1"),
        ({"listeners": "http://[::1]:7"}, "[::1]:7"),
        ({"ksql.advertised.listener": "https://me.example"}, "me.example:8088"),
    ],
)
def test_the_address_of_a_server(properties, host):
    assert own_host(Settings(properties)) == host
