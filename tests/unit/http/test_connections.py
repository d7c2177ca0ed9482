"""Many connections, silent or half open: there is always room for one that asks."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
import threading

import pytest
import trustme

from ksql.http import connections as module
from ksql.http.acceptor import Acceptor
from ksql.http.connections import Connection, Connections, Listening, client_of, listen
from ksql.http.http2 import PREFACE
from tests.unit.http.clients import PATIENCE_S, hosted
from tests.unit.http.test_idle import GET, HALF, late, opened, reading, to_the_end
from tests.unit.http.transports import connected
from tests.waits import await_true

SHORT_S = 0.05


async def quick(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"<all>"})


class Held:
    """An application whose answers wait for a word."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    async def __call__(self, scope, receive, send):
        self.begun.release()
        while not self.go.is_set():
            await asyncio.sleep(0.01)
        await quick(scope, receive, send)


@contextlib.contextmanager
def silent(port, count, text=b""):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(opened(port)) for _ in range(count)]
        for sock in sockets:
            sock.sendall(text)
        yield sockets


def response_of(port):
    """Whether a new connection is answered."""
    with opened(port) as sock:
        sock.sendall(GET)
        return b"<all>" in sock.recv(1 << 16)


def answered(port):
    """Whether a new connection was neither refused nor left without an answer."""
    try:
        return response_of(port)
    except ConnectionResetError:
        return False


def test_the_kernel_asks_whether_a_silent_client_is_still_there():
    with listen("127.0.0.1", 0) as sock, socket.create_connection(sock.getsockname()):
        accepted, _ = sock.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


@pytest.mark.parametrize("limits", [(6, 100), (100, 6)])
@pytest.mark.parametrize("text", [b"", b"P", GET[:9], PREFACE, GET])
def test_the_connection_that_is_idle_longest_makes_room(limits, text, caplog):
    with hosted(quick, connections=Connections(*limits)) as port, silent(port, 6, text) as old:
        for _ in range(3):
            assert response_of(port)
        for sock in old[:1]:
            to_the_end(sock)
    crowded = [each for each in caplog.records if each.message == "connections_crowded"]
    assert len(crowded) == 1


def test_a_burst_is_taken_in_rounds(monkeypatch):
    """Those that make room are closed after a round of the loop only."""
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    monkeypatch.setattr(module, "_MOST_CLOSING", 8)
    with hosted(quick, connections=Connections(4, 4)) as port, silent(port, 200):
        await_true(
            "it is answered", lambda: answered(port)
        )  # one that finds none closed is refused


def from_address(host, port):
    """A connection from that address of this machine."""
    sock = socket.socket()
    sock.settimeout(PATIENCE_S)
    sock.bind((host, 0))
    sock.connect(("127.0.0.1", port))
    return sock


def begun_in_rounds(monkeypatch, hosts, *, is_tls=False, table=None):
    """From which addresses connections begin, in the order of the loop's rounds."""
    monkeypatch.setattr(module, "_AT_ONCE", 5)
    monkeypatch.setattr(module, "_HANDSHAKES_AT_ONCE", 2)
    rounds: list[list[str]] = [[]]

    async def run():
        others = asyncio.get_running_loop()
        with listen("127.0.0.1", 0) as sock, contextlib.ExitStack() as stack:
            for host in hosts:
                stack.enter_context(from_address(host, sock.getsockname()[1]))
            sock.table, sock.is_tls = Connections() if table is None else table, is_tls

            async def begin(connection):
                if not rounds[-1]:
                    others.call_soon(lambda: rounds.append([]))  # an open connection's turn
                rounds[-1].append(connection.client)
                stack.callback(connection.close)

            acceptor = Acceptor(asyncio.get_running_loop(), sock, begin)
            while sum(map(len, rounds)) < min(len(hosts), len(sock.table) or len(hosts)):
                await asyncio.sleep(0)
            acceptor.close()

    asyncio.run(run())
    return [each for each in rounds if each]


@pytest.mark.parametrize("is_tls", [False, True])
def test_open_connections_have_their_turn_between_few_new_ones(monkeypatch, is_tls):
    rounds = begun_in_rounds(monkeypatch, ["127.0.0.1"] * 12, is_tls=is_tls)
    assert sum(map(len, rounds)) == 12
    assert max(map(len, rounds)) == (2 if is_tls else 5)


def test_the_connections_of_one_address_do_not_delay_that_of_another(monkeypatch):
    hosts = [*["127.0.0.1"] * 40, "127.0.0.2", "127.0.0.3"]
    first, *_ = begun_in_rounds(monkeypatch, hosts)
    assert set(first) == {"127.0.0.1", "127.0.0.2", "127.0.0.3"}


def test_one_that_has_not_begun_makes_room_at_once(monkeypatch):
    table = Connections(6, 6)
    rounds = begun_in_rounds(monkeypatch, ["127.0.0.1"] * 20, table=table)
    assert sum(map(len, rounds)) == 6
    assert len(table) == 0


def test_what_has_not_begun_at_the_end_is_closed():
    async def run():
        with listen("127.0.0.1", 0) as sock:
            sock.table = table = Connections()
            begun = []

            async def begin(connection):
                begun.append(connection)

            with contextlib.ExitStack() as stack:
                for _ in range(100):
                    stack.enter_context(from_address("127.0.0.1", sock.getsockname()[1]))
                acceptor = Acceptor(asyncio.get_running_loop(), sock, begin)
                while not begun:
                    await asyncio.sleep(0)
                acceptor.close()
                await asyncio.sleep(0)  # the next round had begun
                assert len(table) == len(begun) < 100
                for connection in begun:
                    connection.close()

    asyncio.run(run())


def test_few_handshakes_are_under_way(monkeypatch):
    """Their cost when all continue at once is bounded, too; connections that are open stay."""
    monkeypatch.setattr(module, "MOST_HANDSHAKES", 3)
    authority = trustme.CA()
    speaking, trusting = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(),
    )
    authority.issue_cert("127.0.0.1").configure_cert(speaking)
    authority.configure_trust(trusting)
    table = Connections()
    with (
        hosted(quick, speaking, head_s=3600, connections=table) as port,
        contextlib.ExitStack() as stack,
    ):

        def shaken():
            return stack.enter_context(
                trusting.wrap_socket(opened(port), server_hostname="127.0.0.1")
            )

        ready = [shaken() for _ in range(5)]
        waiting = [stack.enter_context(opened(port)) for _ in range(5)]
        for sock in waiting[:2]:
            assert to_the_end(sock) == b""
        for sock in [*ready, shaken()]:
            sock.sendall(GET)
            assert b"<all>" in sock.recv(1 << 16)


def test_waiting_client_is_not_cut_off():
    held = Held()
    with hosted(held, connections=Connections(3, 3)) as port, silent(port, 3, GET) as waiting:
        for _ in waiting:
            assert held.begun.acquire(timeout=PATIENCE_S)
        with opened(port) as refused:
            assert to_the_end(refused) == b""
        held.go.set()
        for sock in waiting:
            assert b"<all>" in sock.recv(1 << 16)


def test_traffic_counts():
    with hosted(quick, connections=Connections(2, 2)) as port, silent(port, 2) as (first, second):
        first.sendall(GET)
        assert b"<all>" in first.recv(1 << 16)
        assert response_of(port)
        assert to_the_end(second) == b""
        first.sendall(GET)
        assert b"<all>" in first.recv(1 << 16)


def test_the_address_with_most_connections_makes_room():
    table = Connections(4, 3)
    pairs = [socket.socketpair() for _ in range(6)]
    connections = [
        Connection.of(pair[0], table, place)
        for pair, place in zip(pairs, ("a", "b", "b", "b", "a", "b"), strict=True)
    ]
    try:
        assert all(table.admit(each) for each in connections[:4])
        assert table.admit(connections[4])
        assert [each.closing for each in connections[:5]] == [False, True, False, False, False]
        connections[1].close()
        assert len(table) == 4
        for number in (0, 2, 4):
            connections[number].is_busy = lambda: True
        assert table.admit(connections[5])
        assert [each.closing for each in connections[2:]] == [False, True, False, False]
        for each in connections:
            each.close()
        assert len(table) == 0
    finally:
        for one, other in pairs:
            one.close()
            other.close()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (("10.0.0.1", 5), "10.0.0.1"),
        (("::ffff:10.0.0.1", 5, 0, 0), "10.0.0.1"),
        (("2001:db8:1:2:3::4", 5, 0, 0), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 5, 0, 0), "fe80::/64"),
        ("", ""),
    ],
)
def test_addresses_of_one_client_count_together(address, place):
    assert client_of(address) == place


@pytest.mark.parametrize(
    "text",
    [b"", b"PRI * HT", GET[:2], GET[:-2], PREFACE, GET + GET[:9], b"DELETE" + GET[3:] + b"D"],
)
def test_a_head_has_seconds_to_come(text):
    with hosted(reading, head_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(text)
        to_the_end(sock)


def test_a_head_does_not_get_more_time_by_its_bytes():
    async def run():
        transport, _ = connected(quick, head_s=SHORT_S)
        transport.protocol.data_received(GET[:5])
        for _ in range(int(50 * PATIENCE_S)):
            if transport.closing:
                return
            transport.protocol.data_received(b"a")
            await asyncio.sleep(SHORT_S / 5)
        pytest.fail("the connection is still open")

    asyncio.run(run())


@pytest.mark.parametrize("method", [b"GET", b"DELETE"])
def test_answers_bodies_and_the_time_between_requests_have_their_own(method):
    with hosted(late, head_s=SHORT_S) as port, opened(port) as sock:
        for _ in range(2):
            sock.sendall(method + b" /twice" + GET[6:])
            end = b"0\r\n\r\n" if method == b"DELETE" else b"<0>"
            assert b"<0>" in to_the_end_or(sock, end)
            threading.Event().wait(3 * SHORT_S)


def test_a_body_has_more_time_than_a_head():
    head = b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % HALF
    with hosted(late, head_s=SHORT_S) as port, opened(port) as sock:
        sock.sendall(head)
        threading.Event().wait(3 * SHORT_S)
        sock.sendall(b"x" * HALF)
        assert b"<100000>" in to_the_end_or(sock, b"<100000>")


def to_the_end_or(sock, end):
    received = b""
    while end not in received and (data := sock.recv(1 << 16)):
        received += data
    return received


def test_a_failed_accept_is_logged_once(monkeypatch, caplog):
    """asyncio wrote a traceback for each, 2.5 MB a second."""
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.01)
    usual, failures = Listening.accept, iter(range(5))

    def accept(self):
        if next(failures, None) is not None:
            raise OSError(errno.EMFILE, "Too many open files")
        return usual(self)

    monkeypatch.setattr(Listening, "accept", accept)
    with caplog.at_level(logging.WARNING), hosted(quick) as port:
        assert response_of(port)
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.message for each in warnings] == ["accept_failed"]
    assert warnings[0].exc_info is None
    assert next(failures, None) is None


def test_other_errors_of_the_loop_are_reported_in_full(caplog):
    async def run():
        loop = asyncio.get_running_loop()
        module.quiet_about_descriptors(loop)
        loop.call_exception_handler({"message": "another", "exception": ValueError("x")})

    asyncio.run(run())
    assert caplog.records[-1].exc_info is not None
