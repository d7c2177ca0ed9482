"""Heartbeats go to all others, and one that is silent keeps none from the next."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass

from ksql.cluster.calls import Calls, NotReached
from ksql.cluster.heartbeats import Heartbeats
from ksql.cluster.members import Server

A, B, C = (Server("host", port) for port in (8001, 8002, 8003))


@dataclass
class Three:
    me: Server = B

    def alive(self):
        return (A, B, C)

    def leader(self):
        return A


class RecordingCalls(Calls):
    """Requests are given to a function."""

    def __init__(self, answer):
        super().__init__(1.0)
        self._answer = answer

    @contextlib.contextmanager
    def call(self, server, method, path, *, body=b"", headers, timeout_s):
        assert (method, path) == ("POST", "/heartbeat")
        self._answer(server, json.loads(body))
        yield Taken()


class Taken:
    def read(self):
        return b""


def heartbeats(answer, interval_s=60.0):
    return Heartbeats(Three(), interval_s, now_ms=lambda: 1234, calls=RecordingCalls(answer))


def beat(beating):
    """Send one to each and wait until all have answered."""
    for each in beating.beat():
        each.result(timeout=10)


def test_a_heartbeat_names_its_server_and_goes_to_all_others():
    seen = []
    beat(heartbeats(lambda *request: seen.append(request)))
    body = {"hostInfo": {"host": "host", "port": 8002}, "timestamp": 1234}
    assert sorted(seen, key=lambda each: each[0]) == [(A, body), (C, body)]


def test_unresponsive_server_does_not_stop_heartbeats_to_others():
    seen = []

    def answer(server, _body):
        seen.append(server)
        if server == A:
            raise NotReached

    beat(heartbeats(answer))
    assert sorted(seen) == [A, C]


def test_hanging_server_delays_no_other_and_gets_one_heartbeat_at_a_time():
    begun, resume, seen = threading.Event(), threading.Event(), []

    def answer(server, _body):
        seen.append(server)
        if server == A:
            begun.set()
            assert resume.wait(10)

    beating = heartbeats(answer)
    first, other = beating.beat()
    other.result(timeout=10)
    assert begun.wait(10)
    assert len(beating.beat()) == 2  # that one is under way still
    resume.set()
    first.result(timeout=10)
    beat(beating)
    assert seen.count(A) == 2
    assert seen.count(C) >= 2
    beating.close()


def test_it_beats_until_it_is_closed():
    beaten = threading.Semaphore(0)

    beating = heartbeats(lambda *_: beaten.release(), 0.01)
    beating.start()
    for _ in range(4):
        assert beaten.acquire(timeout=10)
    beating.close()
    assert not beating._worker.alive
