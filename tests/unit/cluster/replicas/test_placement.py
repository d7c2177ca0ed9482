"""Placement: every server comes to the same one, and little moves when servers come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ksql.cluster.members import Server
from ksql.cluster.replicas.partition_assignment import Placement

SERVERS = st.lists(
    st.builds(Server, st.sampled_from(["a", "b", "10.0.0.1", "::1"]), st.integers(1, 9)),
    min_size=1,
    max_size=6,
    unique=True,
)
TOPICS = st.text("abc", min_size=1, max_size=3)
PARTS = range(40)


@given(SERVERS, TOPICS, st.integers(0, 3), st.randoms())
def test_every_partition_has_one_active_and_as_many_standbys_as_there_can_be(
    servers, topic, standbys, random
):
    placement = Placement.of(servers, standbys)
    other = list(servers)
    random.shuffle(other)
    for partition in PARTS:
        roles = [placement.role(server, topic, partition) for server in servers]
        assert roles.count("ACTIVE") == 1
        assert roles.count("STANDBY") == min(standbys, len(servers) - 1)
        holders = placement.holders(topic, partition)
        assert len(set(holders)) == len(holders)
        assert Placement.of(other, standbys).holders(topic, partition) == holders


@given(SERVERS, TOPICS, st.integers(0, 2), st.data())
def test_only_the_partitions_of_a_server_that_goes_are_reassigned(servers, topic, standbys, data):
    gone = data.draw(st.sampled_from(servers))
    rest = [server for server in servers if server != gone]
    if not rest:
        return
    before, after = Placement.of(servers, standbys), Placement.of(rest, standbys)
    for partition in PARTS:
        had, has = before.holders(topic, partition), after.holders(topic, partition)
        kept = tuple(server for server in had if server != gone)
        assert has[: len(kept)] == kept  # in their order: the first standby becomes the active one
        if gone not in had:
            assert has == had


def test_partitions_are_spread():
    servers = [Server(f"host{number}", 8088) for number in range(3)]
    placement = Placement.of(servers)
    active = [placement.holders("T", partition)[0] for partition in range(300)]
    assert all(70 <= active.count(server) <= 130 for server in servers)


def test_a_server_alone_holds_everything_once():
    me = Server("h", 1)
    placement = Placement.of([me], 2)
    assert placement.holders("T", 0) == (me,)
    assert placement.role(Server("x", 1), "T", 0) == "NONE"
