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


def keeps(holdings, number, *, is_open):
    return holdings.keeps("T", number, "Q", is_open=is_open)


def test_a_server_alone_keeps_everything():
    holdings = PartitionAssignment(Members(), 0)
    assert all(keeps(holdings, number, is_open=False) for number in range(20))
    members = Members()
    members.there = ()  # nobody is known yet
    assert keeps(PartitionAssignment(members, 0), 0, is_open=False)


def test_what_moves_away_is_kept_until_it_is_given_up_and_anew_when_it_comes_back():
    members = Members()
    holdings = PartitionAssignment(members, 0)
    alone = holdings.view()
    members.there = (ME, OTHER)
    assert holdings.view() != alone
    moved = next(n for n in range(99) if holdings.role("T", n) == "NONE")
    stays = next(n for n in range(99) if holdings.role("T", n) == "ACTIVE")
    assert keeps(holdings, moved, is_open=True)
    assert not keeps(holdings, moved, is_open=False)
    before = holdings.view()
    holdings.give_up(("Q", moved), holdings.placement().servers)
    assert holdings.view() != before
    assert not keeps(holdings, moved, is_open=True)
    assert keeps(holdings, stays, is_open=True)
    members.there = (ME,)
    assert keeps(holdings, moved, is_open=False)
    members.there = (ME, OTHER, Server("c", 1))
    assert keeps(holdings, moved, is_open=True)  # its new holders are others, perhaps


def test_what_was_given_up_to_a_server_that_left_is_kept_until_it_runs_again():
    members = Members()
    members.there = both = (ME, OTHER)
    holdings = PartitionAssignment(members, 0)
    moved = next(n for n in range(99) if holdings.role("T", n) == "NONE")
    holdings.give_up(("Q", moved), both)
    assert not keeps(holdings, moved, is_open=True)
    members.there = (ME,)
    assert keeps(holdings, moved, is_open=False)
    holdings.give_up(("Q", moved), both)  # found out while they were both there
    members.there = both  # it starts again, at its former address
    assert keeps(holdings, moved, is_open=True)
    holdings.give_up(("Q", moved), both)
    assert not keeps(holdings, moved, is_open=True)


def test_a_standby_keeps_a_copy():
    members = Members()
    members.there = (ME, OTHER)
    holdings = PartitionAssignment(members, 1)
    assert {holdings.role("T", number) for number in range(20)} == {"ACTIVE", "STANDBY"}
    assert all(keeps(holdings, number, is_open=False) for number in range(20))


THIRD, FOURTH = Server("c", 1), Server("d", 1)


def test_servers_that_wait_hold_everything_among_themselves_and_are_asked_at_last():
    members = Members()
    members.there = (ME, OTHER, THIRD, FOURTH)
    holdings = PartitionAssignment(members, 0)
    before = holdings.view()
    members.wait = frozenset({ME, OTHER})
    assert holdings.view() != before
    roles = {server: [holdings.role("T", n, server) for n in range(20)] for server in members.there}
    for answering, waiting in zip(
        zip(roles[THIRD], roles[FOURTH], strict=True),
        zip(roles[ME], roles[OTHER], strict=True),
        strict=True,
    ):
        assert sorted(answering) == ["ACTIVE", "NONE"]
        assert sorted(waiting) == ["NONE", "STANDBY"]
    for n in range(20):
        order = holdings.order("T", n)
        assert (set(order[:2]), set(order[2:])) == ({THIRD, FOURTH}, {ME, OTHER})
        assert holdings.placement().holders("T", n) == order[:1]
    assert holdings.others() == [OTHER, THIRD, FOURTH]
    members.wait = frozenset()
    assert holdings.view() == before


def test_what_a_server_that_waits_has_not_got_any_more_is_given_up_like_any():
    members = Members()
    members.there, members.wait = (ME, OTHER, THIRD), frozenset({ME, OTHER})
    holdings = PartitionAssignment(members, 0)
    moved = next(n for n in range(99) if holdings.role("T", n) == "NONE")
    assert keeps(holdings, moved, is_open=True)
    holdings.give_up(("Q", moved), holdings.own_placement().servers)
    assert not keeps(holdings, moved, is_open=True)
    members.wait = frozenset()
    assert keeps(holdings, moved, is_open=True)
