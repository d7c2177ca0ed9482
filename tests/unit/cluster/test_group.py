"""The members of the group, and the leader."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ksql.cluster.group import GroupMembers, group_name, member_name
from ksql.cluster.members import Server

A, B, C = (Server("host", port) for port in (8001, 8002, 8003))


@dataclass
class Group:
    names: tuple[str, ...] = ()
    left: float = 0.0

    def close(self, patience_s: float) -> None:
        self.left = patience_s


def members(names=(), leader=None, me=B):
    return GroupMembers(me, Group(tuple(names)), lambda: leader)


def test_a_server_counts_itself_before_the_group_does():
    assert members().alive() == (B,)


def test_all_members_are_alive_in_order_and_others_are_left_out():
    assert members(["host:8003", "host:8002", "rdkafka", "host:8001"]).alive() == (A, B, C)


def test_the_leader_is_alive_before_the_group_shows_it():
    names = members(["host:8002"], leader=A)
    assert names.alive() == (A, B)
    assert names.leader() == A


def test_group_without_a_leader():
    assert members(["host:8002", "host:8001"]).leader() is None


@pytest.mark.parametrize(("gone", "rank"), [(None, 1), (A, 0), (C, 1), (B, 1)])
def test_the_rank_leaves_out_the_server_that_is_replaced(gone, rank):
    assert members(["host:8001", "host:8002", "host:8003"]).rank(gone) == rank


def test_the_group_is_named_after_the_service():
    assert group_name("default_") == "_confluent-ksql-default__servers"


def test_servers_announce_the_format_of_their_stores():
    names = ["host:8003", member_name(B, 2), member_name(A, 1), "rdkafka"]
    servers = members(names)
    assert servers.alive() == (A, B, C)
    assert servers.store_formats() == {"host:8001": 1, "host:8002": 2, "host:8003": 0}
    assert servers.rank(None) == 1


def test_nobody_is_known_before_the_group_lists_this_server():
    assert members([member_name(A, 1)]).store_formats() is None


def test_leader_outside_the_group_announces_nothing():
    servers = members([member_name(B, 1)], leader=A)
    assert servers.store_formats() == {"host:8001": 0, "host:8002": 1}


def test_servers_wait_while_one_of_an_earlier_format_is_listed():
    names = [member_name(A, 1), member_name(B, 2, waits=True), member_name(C, 2)]
    servers = members(names)
    assert servers.waiting() == {B}
    assert servers.alive() == (A, B, C)
    assert servers.store_formats() == {"host:8001": 1, "host:8002": 2, "host:8003": 2}
    assert members(names[1:]).waiting() == frozenset()
    assert members(["host:8001", *names[1:]]).waiting() == {B}  # one that announces nothing
    assert members(names[1:], leader=A).waiting() == frozenset()  # it is not listed any more
    assert members().waiting() == frozenset()


def test_a_server_that_leaves_is_one_of_them_for_itself_only():
    group = Group(("host:8001", "host:8002"))
    member = GroupMembers(B, group, lambda: None)
    member.leave(1.5)
    assert group.left == 1.5
    group.names = ("host:8001",)
    assert member.alive() == (A, B)
