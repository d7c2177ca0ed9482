"""Servers of one service on machines whose clocks differ by an hour.

Each is a process whose Python sees another time, another uptime and another machine's id.
"""

from __future__ import annotations

import sys
import time

import pytest

from tests.kafka.fleet import EXACTLY, Counting, fleet, sources
from tests.kafka.records import read_all
from tests.kafka.servers import EARLIEST
from tests.waits import await_true

HOUR_S = 3600


def machine(ahead_s):
    return [sys.executable, "-m", "tests.kafka.skewed_server", str(ahead_s)]


@pytest.fixture
def two(broker, tmp_path):
    properties = {
        "ksql.heartbeat.enable": "true",
        "ksql.lag.reporting.enable": "true",
        "ksql.streams.num.standby.replicas": "1",
        "ksql.query.pull.enable.standby.reads": "true",
    }
    with fleet(broker.bootstrap, tmp_path, **properties) as servers:
        yield servers


def started(two, ahead_s):
    """The leader, whose clock is wrong, another one, and counts on both guarantees."""
    one = two.start(1, script=machine(ahead_s))
    other = two.start(2, script=machine(0))
    both = Counting(two), Counting(two)
    for counting, properties in zip(both, (EXACTLY, EARLIEST), strict=True):
        counting.declare(other, properties)
        counting.send(500)
        counting.await_counted()
    return one, other, both


def alive(server):
    status = server.http.client.get("/clusterStatus").json()["clusterStatus"]
    return sorted(host for host, each in status.items() if each["hostAlive"])


@pytest.mark.proof
def test_another_server_takes_over_from_one_whose_clock_is_ahead(two):
    one, other, both = started(two, HOUR_S)
    exactly, plain = both
    stamped = f"AT_{plain.source}"
    one.http.ksql(
        f"CREATE STREAM {stamped} AS SELECT K, UNIX_TIMESTAMP() AS T FROM {plain.source};"
    )

    def stamps():
        return [seen.value["T"] for seen in read_all(two.bootstrap, stamped)]

    await_true("all have a time", lambda: len(stamps()) >= 500)
    off_s = [stamp / 1000 - time.time() for stamp in stamps()]
    assert all(abs(off - HOUR_S) < HOUR_S / 4 for off in off_s), off_s  # Spark's workers, too
    hosts = sorted(each.http.url.removeprefix("http://") for each in (one, other))
    pull = f"SELECT C FROM {exactly.table} WHERE K = 'k1';"
    for server in (one, other):
        await_true("both are alive", lambda s=server: alive(s) == hosts)
        await_true("it answers", lambda s=server: s.http.rows(pull) == [[100]])
        assert set(server.http.queries().values()) == {"RUNNING"}
    two.kill(1)
    for each in both:
        each.send(500)
        each.await_counted()
    assert two.takers() == [2]
    assert exactly.copied() == list(range(1000))
    await_true("it answers", lambda: other.http.rows(pull) == [[200]])


@pytest.mark.proof
@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def test_a_server_with_a_wrong_clock_that_slept_writes_nothing_more_and_returns(two, ahead_s):
    one, other, both = started(two, ahead_s)
    exactly, _ = both
    two.pause(1)
    for each in both:
        each.send(500)
        each.await_counted()
        each.await_committed(other)
    before = [two.written(each) for each in both]
    two.resume()
    two.await_anew(1)
    assert [two.written(each) for each in both] == before
    pull = f"SELECT C FROM {exactly.table} WHERE K = 'k1';"
    await_true("a standby reads", lambda: one.http.rows(pull) == [[200]])
    two.stop(2)
    for each in both:
        each.send(500)
        each.await_counted()
    assert two.takers() == [1, 2]
    assert exactly.copied() == list(range(1500))
    assert exactly.copy in sources(one)
