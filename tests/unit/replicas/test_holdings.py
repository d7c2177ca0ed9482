"""Which partitions a server keeps."""

from __future__ import annotations

from ksql.cluster.members import Server
from ksql.replicas.holdings import Holdings

ME, OTHER = Server("a", 1), Server("b", 1)


class Members:
    me = ME

    def __init__(self):
        self.there: tuple[Server, ...] = (ME,)

    def alive(self):
        return self.there


def keeps(holdings, number, *, is_open):
    return holdings.keeps("T", number, "Q", is_open=is_open)


def test_a_server_alone_keeps_everything():
    holdings = Holdings(Members(), 0)
    assert all(keeps(holdings, number, is_open=False) for number in range(20))
    members = Members()
    members.there = ()  # nobody is known yet
    assert keeps(Holdings(members, 0), 0, is_open=False)


def test_what_moves_away_is_kept_until_it_is_given_up_and_anew_when_it_comes_back():
    members = Members()
    holdings = Holdings(members, 0)
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


def test_a_standby_keeps_a_copy():
    members = Members()
    members.there = (ME, OTHER)
    holdings = Holdings(members, 1)
    assert {holdings.role("T", number) for number in range(20)} == {"ACTIVE", "STANDBY"}
    assert all(keeps(holdings, number, is_open=False) for number in range(20))
