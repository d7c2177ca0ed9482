"""Which partitions a server keeps."""

from __future__ import annotations

from ksql.cluster.members import Server
from ksql.cluster.replicas.partition_assignment import PartitionAssignment

ME, OTHER = Server("a", 1), Server("b", 1)


class Members:
    me = ME

    def __init__(self):
        self.there: tuple[Server, ...] = (ME,)
        self.wait: frozenset[Server] = frozenset()

    def alive(self):
        return self.there

    def waiting(self):
        return self.wait


def keeps(assignment, number, *, is_open):
    return assignment.keeps("T", number, "Q", is_open=is_open)


def test_a_server_alone_keeps_everything():
    assignment = PartitionAssignment(Members(), 0)
    assert all(keeps(assignment, number, is_open=False) for number in range(20))
    members = Members()
    members.there = ()  # nobody is known yet
    assert keeps(PartitionAssignment(members, 0), 0, is_open=False)


def test_moved_partition_is_kept_until_given_up_and_again_when_it_returns():
    members = Members()
    assignment = PartitionAssignment(members, 0)
    alone = assignment.view()
    members.there = (ME, OTHER)
    assert assignment.view() != alone
    moved = next(n for n in range(99) if assignment.role("T", n) == "NONE")
    stays = next(n for n in range(99) if assignment.role("T", n) == "ACTIVE")
    assert keeps(assignment, moved, is_open=True)
    assert not keeps(assignment, moved, is_open=False)
    before = assignment.view()
    assignment.give_up(("Q", moved), assignment.placement().servers)
    assert assignment.view() != before
    assert not keeps(assignment, moved, is_open=True)
    assert keeps(assignment, stays, is_open=True)
    members.there = (ME,)
    assert keeps(assignment, moved, is_open=False)
    members.there = (ME, OTHER, Server("c", 1))
    assert keeps(assignment, moved, is_open=True)  # its new holders are others, perhaps


def test_partition_of_a_departed_server_is_kept_until_it_runs_again():
    members = Members()
    members.there = both = (ME, OTHER)
    assignment = PartitionAssignment(members, 0)
    moved = next(n for n in range(99) if assignment.role("T", n) == "NONE")
    assignment.give_up(("Q", moved), both)
    assert not keeps(assignment, moved, is_open=True)
    members.there = (ME,)
    assert keeps(assignment, moved, is_open=False)
    assignment.give_up(("Q", moved), both)  # found out while they were both there
    members.there = both  # it starts again, at its former address
    assert keeps(assignment, moved, is_open=True)
    assignment.give_up(("Q", moved), both)
    assert not keeps(assignment, moved, is_open=True)


def test_a_standby_keeps_a_copy():
    members = Members()
    members.there = (ME, OTHER)
    assignment = PartitionAssignment(members, 1)
    assert {assignment.role("T", number) for number in range(20)} == {"ACTIVE", "STANDBY"}
    assert all(keeps(assignment, number, is_open=False) for number in range(20))


THIRD, FOURTH = Server("c", 1), Server("d", 1)


def test_waiting_servers_hold_everything_among_themselves_and_are_queried_last():
    members = Members()
    members.there = (ME, OTHER, THIRD, FOURTH)
    assignment = PartitionAssignment(members, 0)
    before = assignment.view()
    members.wait = frozenset({ME, OTHER})
    assert assignment.view() != before
    roles = {
        server: [assignment.role("T", n, server) for n in range(20)] for server in members.there
    }
    for answering, waiting in zip(
        zip(roles[THIRD], roles[FOURTH], strict=True),
        zip(roles[ME], roles[OTHER], strict=True),
        strict=True,
    ):
        assert sorted(answering) == ["ACTIVE", "NONE"]
        assert sorted(waiting) == ["NONE", "STANDBY"]
    for n in range(20):
        order = assignment.order("T", n)
        assert (set(order[:2]), set(order[2:])) == ({THIRD, FOURTH}, {ME, OTHER})
        assert assignment.placement().holders("T", n) == order[:1]
    assert assignment.others() == [OTHER, THIRD, FOURTH]
    members.wait = frozenset()
    assert assignment.view() == before


def test_partition_that_a_follower_has_lost_is_given_up():
    members = Members()
    members.there, members.wait = (ME, OTHER, THIRD), frozenset({ME, OTHER})
    assignment = PartitionAssignment(members, 0)
    moved = next(n for n in range(99) if assignment.role("T", n) == "NONE")
    assert keeps(assignment, moved, is_open=True)
    assignment.give_up(("Q", moved), assignment.own_placement().servers)
    assert not keeps(assignment, moved, is_open=True)
    members.wait = frozenset()
    assert keeps(assignment, moved, is_open=True)
