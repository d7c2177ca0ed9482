from __future__ import annotations

import socket

import pytest

from server.listeners import (
    BadListener,
    Listener,
    PortInUse,
    bind,
    open_doors,
    parse_listeners,
    url_of,
)


def test_listeners_are_urls() -> None:
    assert parse_listeners("http://0.0.0.0:8088, http://[::1]:1,http://h,https://x:1") == (
        Listener("0.0.0.0", 8088),
        Listener("::1", 1),
        Listener("h", 8088),
        Listener("x", 1, tls=True),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ftp://x:1", "http://"),
        ("localhost:8088", "http://"),
        ("http://h:99999", "no valid port"),
        ("http://h:x", "no valid port"),
    ],
)
def test_other_listeners_are_refused(text: str, says: str) -> None:
    with pytest.raises(BadListener, match=says):
        parse_listeners(text)


def test_the_listener_for_other_servers_is_one_more() -> None:
    doors = open_doors(
        {"listeners": "http://127.0.0.1:0", "ksql.internal.listener": "http://localhost:0"}
    )
    try:
        assert doors.hosts == ["127.0.0.1", "localhost"]
        assert len({sock.getsockname()[1] for sock in doors.sockets}) == 2
    finally:
        doors.close()


def test_a_listener_for_clients_and_other_servers_is_bound_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = f"http://127.0.0.1:{free.getsockname()[1]}"
    doors = open_doors({"listeners": here, "ksql.internal.listener": here})
    doors.close()
    assert len(doors.listeners) == 1


def test_a_port_in_use_is_named_and_nothing_stays_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use") as caught:
            bind([Listener("127.0.0.1", 0), Listener("127.0.0.1", port)])
        assert f":{port + 1}" in caught.value.text()


def test_an_address_of_another_machine() -> None:
    with pytest.raises(BadListener, match="cannot be bound"):
        bind([Listener("192.0.2.1", 0)])


def test_urls_are_for_this_machine() -> None:
    for host, shown in (("0.0.0.0", "localhost"), ("127.0.0.1", "127.0.0.1")):
        (sock,) = bind([Listener(host, 0)])
        with sock:
            assert url_of(sock) == f"http://{shown}:{sock.getsockname()[1]}"


def test_answers_do_not_wait_for_acknowledgements() -> None:
    (sock,) = bind([Listener("127.0.0.1", 0)])
    with (
        sock,
        socket.create_connection(sock.getsockname()),
        sock.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
