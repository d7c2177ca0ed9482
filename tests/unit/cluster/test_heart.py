"""Heartbeats go to all others, and one that is silent keeps none from the next."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

import httpx

from ksql.cluster.heart import Heart
from ksql.cluster.members import Server

A, B, C = (Server("host", port) for port in (8001, 8002, 8003))


@dataclass
class Three:
    me: Server = B

    def alive(self):
        return (A, B, C)

    def in_charge(self):
        return A


def heart(answer, interval_s=60.0, members=None):
    client = httpx.Client(transport=httpx.MockTransport(answer))
    return Heart(members or Three(), interval_s, now_ms=lambda: 1234, client=client)


def beat(beating):
    """Send one to each and wait until all have answered."""
    for each in beating.beat():
        each.result(timeout=10)


def test_a_heartbeat_names_its_server_and_goes_to_all_others():
    seen = []

    def answer(request):
        seen.append((str(request.url), json.loads(request.content)))
        return httpx.Response(200)

    beat(heart(answer))
    body = {"hostInfo": {"host": "host", "port": 8002}, "timestamp": 1234}
    assert sorted(seen, key=lambda each: each[0]) == [
        ("http://host:8001/heartbeat", body),
        ("http://host:8003/heartbeat", body),
    ]


def test_a_name_that_is_no_address_keeps_none_from_the_next():
    seen = []

    class Odd(Three):
        def alive(self):
            return (Server("a b\x00", 1), C)

    def answer(request):
        seen.append(request.url.port)
        return httpx.Response(200)

    beat(heart(answer, members=Odd()))
    assert seen == [8003]


def test_one_that_does_not_answer_keeps_none_from_the_next():
    seen = []

    def answer(request):
        seen.append(request.url.port)
        if request.url.port == 8001:
            raise httpx.ConnectError("refused")
        return httpx.Response(404)

    beat(heart(answer))
    assert sorted(seen) == [8001, 8003]


def test_one_that_hangs_delays_no_other_and_gets_one_at_a_time():
    begun, go_on, seen = threading.Event(), threading.Event(), []

    def answer(request):
        seen.append(request.url.port)
        if request.url.port == 8001:
            begun.set()
            assert go_on.wait(10)
        return httpx.Response(200)

    beating = heart(answer)
    first, other = beating.beat()
    other.result(timeout=10)
    assert begun.wait(10)
    assert len(beating.beat()) == 2  # that one is under way still
    go_on.set()
    first.result(timeout=10)
    beat(beating)
    assert seen.count(8001) == 2
    assert seen.count(8003) >= 2
    beating.close()


def test_it_beats_until_it_is_closed():
    beaten = threading.Semaphore(0)

    def answer(_request):
        beaten.release()
        return httpx.Response(200)

    beating = heart(answer, 0.01)
    beating.start()
    for _ in range(4):
        assert beaten.acquire(timeout=10)
    beating.close()
    assert not beating._thread.is_alive()
