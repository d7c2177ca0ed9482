"""What is said to other servers, and what is given up to them."""

from __future__ import annotations

import threading

import orjson
import pytest

from ksql.cluster.members import HostStoreLags, LagInfo, Server, StateStoreLags
from ksql.cluster.replicas.cluster_status import ENABLED
from ksql.cluster.replicas.lag_reporter import REPORTING, LagReporter
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.read_request import Unreachable
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.core.config import Settings

ME, OTHER = Server("a", 1), Server("b", 1)
HOME = "CTAS_T_1"
SOURCE = type("Source", (), {"name": "T", "topic": "T", "created_by": HOME})


class Members:
    me = ME

    def __init__(self, *there):
        self.there = there

    def alive(self):
        return self.there

    def waiting(self):
        return frozenset()


class Tables:
    """One table; all partitions are here, a half of them only on disk."""

    def tables(self):
        return [type("Table", (), {"source": SOURCE, "parts": dict.fromkeys(range(10))})]

    def held(self, table):
        return {*table.parts, *range(10, 20)}


class LocalReplicas:
    def __init__(self):
        self.looks = 0

    def refresh(self):
        self.looks += 1


class Peers:
    """Another server, whose copies are in this state."""

    def __init__(self, state="RUNNING"):
        self.state = state
        self.sent = []
        self.got = threading.Event()

    def replica_statuses(self, server, credentials):
        if self.state is None:
            raise Unreachable("gone")
        return {(HOME, number): ReplicaStatus(state=self.state) for number in range(20)}

    def post(self, server, path, body, credentials, timeout_s):
        self.sent.append((server, path, orjson.loads(body), credentials))
        self.got.set()


class Cluster:
    def own_lags(self):
        return HostStoreLags({f"{HOME}#T": StateStoreLags({"0": LagInfo(7, 9, 2)})}, 5)


def lag_reporter(peers, *there, **settings):
    assignment = PartitionAssignment(Members(*there), 0)
    reporter = LagReporter(
        Settings({ENABLED: "true", **settings}),
        assignment,
        Tables(),
        LocalReplicas(),
        peers,
        Cluster(),
        "Basic x",
    )
    return reporter, assignment


def kept(assignment):
    return [n for n in range(20) if assignment.keeps("T", n, HOME, is_open=True)]


@pytest.mark.parametrize("state", ["RESTORING", None])
def test_partitions_not_yet_held_elsewhere_are_kept(state):
    reporter, assignment = lag_reporter(Peers(state), ME, OTHER)
    reporter.poll()
    assert kept(assignment) == list(range(20))
    reporter.close()


def test_partitions_held_elsewhere_are_given_up():
    reporter, assignment = lag_reporter(Peers(), ME, OTHER)
    reporter.poll()
    assert kept(assignment) == [n for n in range(20) if assignment.role("T", n) == "ACTIVE"]
    assert 0 < len(kept(assignment)) < 20
    reporter.close()


def test_lags_are_sent_to_the_others():
    peers = Peers()
    reporter, _ = lag_reporter(peers, ME, OTHER, **{REPORTING: "true"})
    reporter.start()
    assert peers.got.wait(20)
    reporter.close()
    server, path, body, credentials = peers.sent[0]
    assert (server, path, credentials) == (OTHER, "/lag", "Basic x")
    assert body["ksqlHost"] == {"host": "a", "port": 1}
    [store] = body["hostStoreLags"]["stateStoreLags"].items()
    lag = {"currentOffsetPosition": 7, "endOffsetPosition": 9, "offsetLag": 2}
    assert store == (f"{HOME}#T", {"lagByPartition": {"0": lag}})


def test_a_server_alone_says_nothing_and_asks_nothing():
    peers = Peers()
    reporter, assignment = lag_reporter(peers, ME, **{REPORTING: "true"})
    reporter.start()
    assert not peers.got.wait(0.3)
    reporter.close()
    assert (peers.sent, reporter._local_replicas.looks) == ([], 0)
    assert len(kept(assignment)) == 20
