"""Requests to other servers: connections are kept, and what becomes of broken ones."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

import pytest
import trustme

from ksql.cluster.calls import Calls, ConnectionBroken, NotReached, PeerSilent, TooSlow
from ksql.cluster.members import Server

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nwhole"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
HALF_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"
STALLED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Le"
STALLED = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"
STALLED_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n9\r\nma"
HANG_UP = None


class Scripted:
    """A server that gives these answers, one a request; ``accepted`` counts connections."""

    def __init__(self, *answers: bytes | None, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.accepted = 0
        self.hung_up = threading.Event()
        self.silent = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.server = Server("127.0.0.1", self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                with contextlib.suppress(ssl.SSLError), self._spoken(connection) as spoken:
                    self._serve(spoken)

    def _spoken(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        return self._tls.wrap_socket(connection, server_side=True)

    def _serve(self, connection: socket.socket) -> None:
        while data := connection.recv(65_536):
            self.requests.append(data)
            if not self.answers:
                self.silent.set()
                connection.recv(1)
                return
            answer = self.answers.pop(0)
            if answer is HANG_UP:
                return
            connection.sendall(answer)
            if answer in (LAST, HALF, HALF_CHUNKED):
                return
            if self.answers[:1] == [b"gone"]:
                self.answers.pop(0)
                connection.shutdown(socket.SHUT_WR)
                self.hung_up.set()
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def scripted(*answers: bytes | None):
    server, calls = Scripted(*answers), Calls(1.0)
    try:
        yield server, calls
    finally:
        calls.close()
        server.close()


def answer_of(calls: Calls, server: Scripted, *, timeout_s: float = 5.0, body: bytes = b"{}"):
    """Status, kind and text of an answer, read piece by piece."""
    with calls.call(
        server.server, "POST", "/p", body=body, headers={"x-y": "z"}, timeout_s=timeout_s
    ) as called:
        return called.status, called.content_type, b"".join(called.pieces())


def test_a_connection_is_used_again_once_its_answer_was_read():
    with scripted(WHOLE, CHUNKED, WHOLE) as (server, calls):
        assert answer_of(calls, server) == (200, "text/x", b"whole")
        assert answer_of(calls, server) == (200, "", b"abcde")
        with calls.call(server.server, "GET", "/q", headers={}, timeout_s=5.0) as called:
            assert called.read() == b"whole"
        assert server.accepted == 1
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /p HTTP/1.1\r\n")
    assert b"\r\nx-y: z" in head
    assert body == b"{}"
    assert server.requests[2].startswith(b"GET /q HTTP/1.1\r\n")


def test_an_answer_that_is_left_ends_its_connection():
    with scripted(CHUNKED, WHOLE) as (server, calls):
        with calls.call(server.server, "GET", "/", headers={}, timeout_s=5.0) as called:
            next(called.pieces())
        assert answer_of(calls, server) == (200, "text/x", b"whole")
        assert server.accepted == 2


def test_a_server_may_close_a_connection_with_its_answer():
    with scripted(LAST, WHOLE) as (server, calls):
        assert answer_of(calls, server) == (503, "", b"no")
        assert answer_of(calls, server) == (200, "text/x", b"whole")
        assert server.accepted == 2


@pytest.mark.parametrize("end", [b"gone", HANG_UP])
def test_a_connection_that_was_closed_while_it_rested_is_no_failure(end):
    """Before the request, or just when it comes."""
    with scripted(WHOLE, end, WHOLE) as (server, calls):
        answer_of(calls, server)
        if end is not HANG_UP:
            assert server.hung_up.wait(5)
        assert answer_of(calls, server) == (200, "text/x", b"whole")
        assert server.accepted == 2


def test_a_new_connection_that_is_closed_at_once_is_broken():
    with (
        scripted(HANG_UP, WHOLE) as (server, calls),
        pytest.raises(ConnectionBroken, match="Disconnected"),
    ):
        answer_of(calls, server)


@pytest.mark.parametrize("half", [HALF, HALF_CHUNKED])
def test_half_an_answer_is_broken(half):
    with scripted(half) as (server, calls), pytest.raises(ConnectionBroken, match="IncompleteRead"):
        answer_of(calls, server)


def test_response_that_is_no_http_is_broken():
    with (
        scripted(b"220 mail.example ESMTP\r\n") as (server, calls),
        pytest.raises(ConnectionBroken),
    ):
        answer_of(calls, server)


def test_a_header_cannot_begin_another():
    with (
        scripted() as (server, calls),
        pytest.raises(ConnectionBroken),
        calls.call(server.server, "GET", "/", headers={"a": "b\r\nc: d"}, timeout_s=5.0),
    ):
        pass


def test_a_server_that_does_not_answer():
    with scripted() as (server, calls), pytest.raises(TooSlow, match="in time"):
        answer_of(calls, server, timeout_s=0.2)


def test_a_server_that_falls_silent_is_not_waited_for():
    reasons = ["", "", "its last heartbeat was 2100 ms ago"]
    server = Scripted(WHOLE)
    calls = Calls(1.0, silent=lambda peer: reasons.pop(0) if peer == server.server else "?")
    assert answer_of(calls, server)[0] == 200
    with pytest.raises(PeerSilent, match="its last heartbeat was 2100 ms ago"):
        answer_of(calls, server, timeout_s=300)
    assert reasons == []
    calls.close()
    server.close()


def issued() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's certificate, and trust in it."""
    authority, there = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(there)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return there, trusting


@contextlib.contextmanager
def falling_silent(*answers: bytes, tls: bool = False):
    """A server that falls silent at the second look, and what calls it."""
    there, trusting = issued() if tls else (None, None)
    reasons = ["", "it is gone"]
    server = Scripted(*answers, tls=there)
    calls = Calls(1.0, trusting, silent=lambda _: reasons.pop(0))
    try:
        yield server, calls
    finally:
        calls.close()
        server.close()
    assert reasons == []


def test_over_tls_one_that_falls_silent_is_not_waited_for_on_a_new_connection():
    """There are bytes at once, but not of an answer: the tickets of TLS 1.3."""
    with falling_silent(tls=True) as (server, calls), pytest.raises(PeerSilent, match="it is gone"):
        answer_of(calls, server, timeout_s=30)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("begun", [STALLED_HEAD, STALLED, STALLED_CHUNKED])
def test_silence_within_a_response_ends_the_wait(begun, tls):
    with falling_silent(begun, tls=tls) as (server, calls), pytest.raises(PeerSilent, match="gone"):
        answer_of(calls, server, timeout_s=10)


def test_partial_response_is_delivered_before_the_silence():
    with (
        falling_silent(STALLED_CHUNKED) as (server, calls),
        calls.call(server.server, "GET", "/", headers={}, timeout_s=10) as called,
    ):
        pieces = called.pieces()
        assert next(pieces) == b"some"
        with pytest.raises(PeerSilent):
            list(pieces)


@pytest.mark.parametrize("begun", [(), (STALLED,)])
def test_responsive_server_is_waited_for_up_to_the_limit(begun):
    server, calls = Scripted(*begun), Calls(1.0, silent=lambda _: "")
    with pytest.raises(TooSlow):
        answer_of(calls, server, timeout_s=0.4)
    calls.close()
    server.close()


def test_nobody_listens():
    with scripted() as (server, calls):
        server.close()
        server._listener = socket.create_server(("127.0.0.1", 0))
        with pytest.raises(NotReached, match="cannot be reached"):
            answer_of(calls, server)


def test_a_name_that_is_no_address_is_not_reached():
    calls = Calls(1.0)
    for name in ("a b\x00", "." * 70, "x" * 300):
        with (
            pytest.raises((NotReached, ConnectionBroken)),
            calls.call(Server(name, 1), "GET", "/", headers={}, timeout_s=1.0),
        ):
            pass
    calls.close()


def test_closing_ends_what_is_under_way():
    with scripted() as (server, calls):
        failures: list[Exception] = []

        def ask() -> None:
            try:
                answer_of(calls, server, timeout_s=60)
            except ConnectionBroken as problem:
                failures.append(problem)

        thread = threading.Thread(target=ask)
        thread.start()
        assert server.silent.wait(5)
        calls.close()
        thread.join(5)
        assert len(failures) == 1
        with pytest.raises(NotReached):
            answer_of(calls, server)


def test_over_tls_connections_are_kept_too_and_untrusted_servers_are_refused():
    there, trusting = issued()
    server = Scripted(WHOLE, CHUNKED, WHOLE, tls=there)
    strangers, calls = Calls(1.0, ssl.create_default_context()), Calls(1.0, trusting)
    try:
        with pytest.raises(NotReached):
            answer_of(strangers, server)
        assert [answer_of(calls, server)[2] for _ in range(3)] == [b"whole", b"abcde", b"whole"]
        assert server.accepted == 2
    finally:
        for each in (strangers, calls):
            each.close()
        server.close()


def test_only_so_many_connections_are_kept():
    with scripted(WHOLE, WHOLE) as (server, _):
        calls = Calls(1.0, kept=0)
        answer_of(calls, server)
        answer_of(calls, server)
        assert server.accepted == 2
        calls.close()
