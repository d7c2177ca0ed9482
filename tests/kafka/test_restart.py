"""The whole server, embedded broker included, stopped and killed in mid-stream: all goes on."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kafka.records import Feeder, read_all
from tests.kafka.servers import ServerProcess
from tests.waits import await_true

pytestmark = pytest.mark.proof

PARTITIONS = 4
SETUP = f"""
CREATE TYPE Place AS STRUCT<P INT, N INT>;
CREATE STREAM SRC (K STRING KEY, P INT, N INT)
  WITH (KAFKA_TOPIC='SRC', PARTITIONS={PARTITIONS}, VALUE_FORMAT='JSON');
CREATE STREAM OUT AS SELECT K, P, N FROM SRC WHERE N >= 0;
CREATE TABLE CNT AS SELECT K, COUNT(*) AS C, MAX(N) AS LAST FROM SRC GROUP BY K;
CREATE STREAM RESTED AS SELECT K, N FROM SRC;
CREATE STREAM LATER (K STRING KEY, P INT, N INT)
  WITH (KAFKA_TOPIC='LATER', PARTITIONS=1, VALUE_FORMAT='JSON');
INSERT INTO LATER SELECT K, P, N FROM OUT;
ALTER STREAM LATER ADD COLUMN WHERE_ Place;
"""


def outputs(bootstrap):
    """How often each input record came out: (partition, number) -> times."""
    return Counter((s.value["P"], s.value["N"]) for s in read_all(bootstrap, "OUT"))


def await_progress(http, bootstrap, more=40):
    """Both kinds of queries get on."""
    counts = dict(http.rows("SELECT K, C FROM CNT;"))
    out = len(outputs(bootstrap))
    await_true("the filter goes on", lambda: len(outputs(bootstrap)) >= out + more)
    await_true(
        "the counts go on",
        lambda: all(
            c > counts.get(k, 0)
            for k, c in (dict(http.rows("SELECT K, C FROM CNT;")) or {"none": -1}).items()
        ),
    )


def test_nothing_is_lost_over_a_stop_and_over_a_kill(tmp_path, record_property):
    state = tmp_path / "state"

    def start():
        return ServerProcess(
            tmp_path / "log", ksql__state__dir=str(state), ksql__spark__master="local[2]"
        )

    server = start()
    http = server.http
    http.ksql(SETUP)
    rested = next(i for i in http.queries() if "RESTED" in i)
    http.ksql(f"PAUSE {rested};")
    states = http.queries()
    assert sorted(states.values()) == ["PAUSED", "RUNNING", "RUNNING", "RUNNING"]
    before = http.catalog()
    bootstrap = "127.0.0.1:" + (state / "broker" / "port").read_text()
    with Feeder(bootstrap, "SRC", PARTITIONS) as feeder:
        await_progress(http, bootstrap)
        record_property("stop_seconds", round(server.stop(), 1))

        server = start()
        record_property("second_start_seconds", round(server.start_seconds, 1))
        server.http.await_queries(states)
        assert server.http.catalog() == before
        await_progress(server.http, bootstrap)
        twice = [record for record, times in outputs(bootstrap).items() if times > 1]
        assert twice == []
        server.kill()

        server = start()
        record_property("start_after_kill_seconds", round(server.start_seconds, 1))
        server.http.await_queries(states)
        assert server.http.catalog() == before
        await_progress(server.http, bootstrap)
        count = feeder.end()
    everything = {(part, n) for part in range(PARTITIONS) for n in range(count)}
    await_true("every record has come out", lambda: set(outputs(bootstrap)) == everything)
    await_true(
        "every record is counted, and counted once",
        lambda: (
            sorted(server.http.rows("SELECT K, C, LAST FROM CNT;"))
            == [[f"k{part}", count, count - 1] for part in range(PARTITIONS)]
        ),
    )
    server.http.ksql(f"RESUME {rested};")
    await_true(
        "the paused one takes all up",
        lambda: len(read_all(bootstrap, "RESTED")) == count * PARTITIONS,
    )
    assert server.http.queries()[rested] == "RUNNING"
    server.stop()
