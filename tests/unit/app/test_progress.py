"""How far queries are: by this server, by the leader, or by nobody at the moment."""

from __future__ import annotations

import pytest

from ksql.app.monitor import AllEnds, ProcessedOffsets
from ksql.cluster.members import Server
from ksql.cluster.replicas.consistency import NotFollowed
from ksql.cluster.replicas.read_request import Processed, ReadRejected, Unreachable
from ksql.cluster.replicas.replica_status import MISSING
from ksql.kafka.errors import UnknownTopic

ME, OTHER = Server("a", 1), Server("b", 1)


class Members:
    me = ME

    def __init__(self, leader):
        self._leader = leader

    def leader(self):
        return self._leader


class Here:
    def processed(self, query_id):
        return Processed({"here": {0: len(query_id)}}, "why")


class Peers:
    problem: Exception | None = None

    def processed(self, server, query_id, credentials):
        if self.problem is not None:
            raise self.problem
        return Processed({f"{server} {credentials}": {0: len(query_id)}})


def progress(leader, problem=None):
    peers = Peers()
    peers.problem = problem
    return ProcessedOffsets(Here(), Members(leader), peers)


def test_the_leader_knows():
    assert progress(ME).of("Q1", "x") == ({"here": {0: 2}}, "why")
    assert progress(OTHER).of("Q1", "x") == ({"b:1 x": {0: 2}}, "")


@pytest.mark.parametrize(
    ("leader", "problem", "says"),
    [
        (None, None, "no server is the leader"),
        (OTHER, ReadRejected(MISSING), "b:1, which is the leader, starts or ends"),
        (OTHER, Unreachable("it cannot be reached"), "b:1, which is the leader: it cannot be"),
    ],
)
def test_retries_while_the_leader_is_unknown(leader, problem, says):
    with pytest.raises(NotFollowed, match=says):
        progress(leader, problem).of("Q1", "")


def test_topics_end_behind_what_is_not_committed_and_those_that_are_gone_do_not():
    class Admin:
        def end_offsets(self, topics, *, committed):
            [topic] = topics
            if topic == "gone":
                raise UnknownTopic(topic)
            return {(topic, 0): 5 if committed else 7}

    assert AllEnds(Admin())(["t", "gone", "s"]) == {("t", 0): 7, ("s", 0): 7}
