"""The servers as one of them knows them."""

from __future__ import annotations

import pytest

from ksql.cluster.members import HostStoreLags, LagInfo, Server, StateStoreLags
from ksql.cluster.replicas.cluster_status import (
    ENABLED,
    Cluster,
    HeartbeatsOff,
    own_host,
    own_scheme,
)
from ksql.cluster.replicas.local_replicas import LagTracker, LocalReplicas
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.control.statements.entities import TopicPartition
from ksql.core.config import Settings
from ksql.views.materialized_view import MaterializedView
from ksql.views.store_config import StoreConfig
from ksql.views.store_writer import PartitionStore
from ksql.views.stores.memory import MemoryStore
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE TABLE PLAIN (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
"""


ME, OTHER = Server("10.1.1.1", 9000), Server("other", 1)


class Tables:
    """One table's stores, each as far as it says."""

    waits = False

    def __init__(self, world, positions=None):
        source = world.catalog.source("T").queryable()
        self.query_id = str(world.query("T").id)
        parts = {
            number: PartitionStore(
                place=(source.topic, number), store=MemoryStore(), commit_s=1.0, reached=position
            )
            for number, position in enumerate(positions or ())
        }
        table = MaterializedView(source, StoreConfig("in_memory", None, 1_000), parts)
        self.listed = [] if positions is None else [table]

    def tables(self):
        return self.listed

    def of_query(self, query_id):
        return next((table for table in self.listed if query_id == self.query_id), None)


class Members:
    me = ME

    def __init__(self):
        self.there: tuple[Server, ...] = (ME, OTHER)

    def alive(self):
        return self.there

    def waiting(self):
        return frozenset()


class Clock:
    def __init__(self):
        self.ms = 5_000

    def __call__(self):
        return self.ms


def ends(topics):
    return {(topic, number): 10 + number for topic in topics for number in range(2)}


class Servers:
    """This server, in company or alone."""

    def __init__(self, positions=None, *, alone=False, standbys=0, **more):
        self.world = World(SETUP)
        self.clock = Clock()
        self.tables = Tables(self.world, positions)
        self.query_id = self.tables.query_id
        self.members = Members()
        if alone:
            self.members.there = (ME,)
        self.assignment = PartitionAssignment(self.members, standbys)
        local_replicas = LocalReplicas(
            self.tables, self.assignment, LagTracker(ends, lambda: self.clock.ms / 1000)
        )
        settings = Settings({ENABLED: "true", **more})
        self.cluster = Cluster(settings, self.assignment, local_replicas, self.tables, self.clock)

    def status(self):
        return self.cluster.status().cluster_status


def lags(store, partition="0", lag=3):
    return HostStoreLags({store: StateStoreLags({partition: LagInfo(7, 10, lag)})}, 3)


def test_the_lag_of_each_partition():
    servers = Servers((10, 4), alone=True)
    [(host, status)] = servers.status().items()
    assert (host, status.host_alive, status.last_status_update_ms) == ("10.1.1.1:9000", True, 5_000)
    held = status.active_standby_per_query[servers.query_id]
    assert held.active_stores == ("T",)
    assert held.active_partitions == (TopicPartition("T", 0), TopicPartition("T", 1))
    assert (held.stand_by_stores, held.stand_by_partitions) == ((), ())
    lags_by_partition = {"0": LagInfo(10, 10, 0), "1": LagInfo(4, 11, 7)}
    expected = HostStoreLags({f"{servers.query_id}#T": StateStoreLags(lags_by_partition)}, 5_000)
    assert status.host_store_lags == expected


def test_a_store_that_holds_nothing_yet_lacks_all():
    [status] = Servers((0,), alone=True).status().values()
    [store] = status.host_store_lags.state_store_lags.values()
    assert store.lag_by_partition == {"0": LagInfo(0, 10, 10)}


def test_a_table_that_is_not_followed_is_not_shown():
    [status] = Servers(alone=True).status().values()
    assert (status.active_standby_per_query, status.host_store_lags.state_store_lags) == ({}, {})


def test_each_partition_is_active_at_one_server_and_a_standby_at_the_other():
    servers = Servers((10, 11), standbys=1)
    mine, theirs = (servers.status()[str(each)] for each in (ME, OTHER))
    mine, theirs = (each.active_standby_per_query[servers.query_id] for each in (mine, theirs))
    assert set(mine.active_partitions) == set(theirs.stand_by_partitions)
    assert set(mine.stand_by_partitions) == set(theirs.active_partitions)
    assert len(mine.active_partitions) + len(theirs.active_partitions) == 2


def test_others_live_as_long_as_they_are_heard():
    servers = Servers((10,), **{"ksql.heartbeat.window.ms": "100"})
    cluster, report = servers.cluster, lags(f"{servers.query_id}#T")
    assert not servers.status()[str(OTHER)].host_alive
    assert cluster.silent(OTHER) == ""  # never heard: perhaps it has just come
    cluster.note_alive("other:1")
    cluster.reported("other:1", report)
    cluster.note_alive("10.1.1.1:9000")  # itself
    servers.clock.ms += 100
    other = servers.status()[str(OTHER)]
    assert (other.host_alive, other.last_status_update_ms, other.host_store_lags) == (
        True,
        5_000,
        report,
    )
    assert cluster.lags(servers.query_id, 0) == {OTHER: 3}
    assert cluster.silent(OTHER) == ""
    servers.clock.ms += 1
    assert not servers.status()[str(OTHER)].host_alive
    assert "101 ms ago" in cluster.silent(OTHER)


def test_only_members_and_stores_that_there_are_count():
    servers = Servers((10,))
    cluster = servers.cluster
    for number in range(100):
        cluster.note_alive(f"invented:{number}")
        cluster.reported(f"invented:{number}", lags(f"{servers.query_id}#T"))
        cluster.reported("other:1", lags(f"INVENTED#{number}"))
    assert set(servers.status()) == {str(ME), str(OTHER)}
    assert cluster.lags(servers.query_id, 0) == {}
    assert servers.status()[str(OTHER)].host_store_lags.state_store_lags == {}
    for partition in ("1", "-1", "x"):
        cluster.reported("other:1", lags(f"{servers.query_id}#T", partition))
    [store] = servers.status()[str(OTHER)].host_store_lags.state_store_lags.values()
    assert store.lag_by_partition == {}


def test_a_server_that_left_is_forgotten():
    servers = Servers((10,))
    servers.cluster.note_alive("other:1")
    servers.members.there = (ME,)
    assert set(servers.status()) == {str(ME)}
    servers.cluster.note_alive("other:1")
    servers.members.there = (ME, OTHER)
    assert servers.status()[str(OTHER)].last_status_update_ms == 0


def test_without_heartbeats_nothing_is_known():
    cluster = Servers(**{ENABLED: "false"}).cluster
    for ask in (
        cluster.status,
        lambda: cluster.note_alive("x:1"),
        lambda: cluster.reported("x:1", HostStoreLags()),
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
        ({"listeners": "http://a:1", "ksql.internal.listener": "http://b:2"}, "b:2"),
        (
            {
                "ksql.internal.listener": "http://0.0.0.0:2",
                "ksql.advertised.listener": "http://c:2",
            },
            "c:2",
        ),
    ],
)
def test_the_address_of_a_server(properties, host):
    assert own_host(Settings(properties)) == host


@pytest.mark.parametrize(
    ("settings", "scheme"),
    [
        ({}, "http"),
        ({"listeners": "https://0.0.0.0:8443,http://127.0.0.1:8088"}, "https"),
        ({"listeners": "http://h:1", "ksql.advertised.listener": "https://h:2"}, "https"),
    ],
)
def test_servers_speak_to_each_other_as_they_are_reached(settings, scheme):
    assert own_scheme(Settings(settings)) == scheme
