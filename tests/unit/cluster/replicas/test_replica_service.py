"""Where a table's partitions are, and who a server says it is."""

from __future__ import annotations

import base64

import pytest

from ksql.cluster.members import Server
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.replica_service import (
    CREDENTIALS,
    BadKey,
    ReplicaService,
    _authorization,
)
from ksql.core.config import Settings
from ksql.core.errors import StartError, UnknownName
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.views.materialized_view import NotQueryable
from tests.unit.control.engine.earlier import earlier
from tests.unit.world import World

SERVERS = tuple(Server(name, 1) for name in "abc")
SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=4);
CREATE TABLE PLAIN (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K;
CREATE TABLE OLD AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K;
"""


class Members:
    me = SERVERS[0]

    def alive(self):
        return SERVERS

    def waiting(self):
        return frozenset()


class Ends:
    def end_offsets(self, topics):
        return {}


class Tables:
    """Nothing is open yet."""

    def table(self, source):
        return None


@pytest.fixture
def hosts():
    copies = ReplicaService(
        Settings(), PartitionAssignment(Members(), 1), Tables(), Ends(), lambda: 0
    )
    world = World(SETUP)
    earlier(world, "OLD")
    yield lambda name, key=None: copies.hosts(world.catalog, name, key, None)
    copies.close()


def test_each_partition_has_an_active_host_and_a_standby(hosts):
    active_and_standbys = hosts("T")
    assert [each["partition"] for each in active_and_standbys] == [0, 1, 2, 3]
    for each in active_and_standbys:
        assert (each["topic"], len(each["standbys"])) == ("T", 1)
        assert {each["active"], *each["standbys"]} < {"a:1", "b:1", "c:1"}


@pytest.mark.parametrize("table", ["T", "W"])
def test_a_key_has_one_partition_the_one_of_its_writer(hosts, table):
    everything = hosts(table)
    for key in ("a", "bike 7", "x"):
        [place] = partitions_of([key.encode()], 4)
        assert hosts(table, [key]) == [everything[place]]


@pytest.mark.parametrize(
    ("name", "key", "error"),
    [
        ("NONE", None, UnknownName),
        ("PLAIN", None, NotQueryable),
        ("S", None, NotQueryable),
        ("T", ["a", "b"], BadKey),
        ("T", [], BadKey),
        ("OLD", ["a"], BadKey),
    ],
)
def test_unassigned_table_has_no_hosts(hosts, name, key, error):
    with pytest.raises(error):
        hosts(name, key)


def test_server_names_itself(tmp_path):
    assert _authorization("") == ""
    file = tmp_path / "me"
    file.write_text("ann:se:cret\n")
    scheme, text = _authorization(str(file)).split()
    assert (scheme, base64.b64decode(text)) == ("Basic", b"ann:se:cret")
    file.write_text("ann")
    for path in (file, tmp_path / "none"):
        with pytest.raises(StartError, match=CREDENTIALS):
            _authorization(str(path))
