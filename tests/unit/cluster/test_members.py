"""Addresses of servers, and a service of one server."""

from __future__ import annotations

import pytest

from ksql.cluster.members import Server, SingleServer


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("localhost:8088", Server("localhost", 8088)),
        ("[::1]:8089", Server("::1", 8089)),
        ("10.0.0.7:1", Server("10.0.0.7", 1)),
    ],
)
def test_an_address_is_read_as_it_is_written(text: str, server: Server) -> None:
    assert Server.parse(text) == server
    assert str(server) == text


@pytest.mark.parametrize("text", ["", "localhost", ":8088", "localhost:", "localhost:x", "a:-1"])
def test_anything_else_is_no_address(text: str) -> None:
    assert Server.parse(text) is None


def test_servers_have_an_order_that_all_of_them_agree_on() -> None:
    servers = [Server("b", 1), Server("a", 2), Server("a", 1)]

    assert sorted(servers) == [Server("a", 1), Server("a", 2), Server("b", 1)]


def test_single_server_is_alive_and_leads() -> None:
    me = Server("localhost", 8088)

    assert SingleServer(me).alive() == (me,)
    assert SingleServer(me).leader() == me
