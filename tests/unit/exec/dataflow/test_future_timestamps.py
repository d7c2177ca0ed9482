"""Records far ahead of the clock are counted and named; results do not depend on it."""

from __future__ import annotations

import pytest

from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.program import RawBatch
from ksql.exec.dataflow.query_start import plan_of as decoded
from ksql.exec.dataflow.timestamps import FutureTimestamps, WarningsWritten
from ksql.sql.plan.walk import follows_time
from tests.unit.world import World

STREAM = "CREATE STREAM S (K STRING KEY, T BIGINT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON'{});"
WINDOWED = "CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 MINUTE) {};"


def plan_of(*statements):
    world = World("".join(statements))
    (query,) = world.engine.catalog.queries.values()
    return query


def batch(*times, first=0):
    return RawBatch(
        ["s"] * len(times),
        [3] * len(times),
        list(range(first, first + len(times))),
        list(times),
        [b"k"] * len(times),
        [b'{"T": %d}' % (time * 10) for time in times],
    )


def ignored(_operator, _message, _row):
    pass


def test_the_latest_of_all_batches_is_named():
    query = plan_of(STREAM.format(", PARTITIONS=1"), WINDOWED.format("GROUP BY K"))
    ahead = FutureTimestamps(100)
    ingest = load(query.plan).ingest(ahead)
    for each in (batch(100, 7), batch(101, 999, 5, first=2), batch(500, first=5)):
        ingest.add(each, ignored)
    assert (ahead.count, ahead.latest_ms) == (3, 999)
    assert 'topic "s", partition 3, offset 3' in ahead.text()


def test_a_record_that_where_leaves_out_moves_no_time():
    query = plan_of(STREAM.format(", PARTITIONS=1"), WINDOWED.format("WHERE T < 1000 GROUP BY K"))
    ahead = FutureTimestamps(10)
    load(query.plan).ingest(ahead).add(batch(5, 100, 50, 9000), ignored)
    assert (ahead.count, ahead.latest_ms) == (1, 50)
    assert "offset 2" in ahead.text()


def test_records_that_a_join_of_streams_drops_move_time_all_the_same():
    stream = STREAM.format(", PARTITIONS=1")
    query = plan_of(
        stream,
        stream.replace("STREAM S ", "STREAM S2 ").replace("'s'", "'s2'"),
        "CREATE STREAM O AS SELECT S.K, S.T FROM S JOIN S2 WITHIN 1 HOUR ON S.K = S2.K;",
    )
    dead = batch(5, 500, 70)._replace(values=[b"{}", None, b"{}"])
    keyless = batch(5, 600, 70, first=3)._replace(keys=[b"k", None, b"k"])
    ahead = FutureTimestamps(100)
    ingest = load(query.plan).ingest(ahead)
    for each, count in ((dead, 1), (keyless, 2)):
        ingest.add(each, ignored)
        assert ahead.count == count
    assert (ahead.latest_ms, ahead.place) == (600, ("s", 3, 4))


def far(time, partition=3):
    future = FutureTimestamps(0)
    future.see(batch(time)._replace(partitions=[partition]), [time], [0])
    return future


def test_a_process_warns_once_a_minute():
    warned = WarningsWritten()
    times = [(0, 900_000), (1, 900_000), (30_000, 930_000), (59_999, 100), (60_000, 900_000)]
    warnings = [warned.due("Q", far(time), now) for now, time in times]
    assert warnings == [True, False, False, False, True]


def test_a_time_that_is_much_later_is_warned_of_at_once():
    warned = WarningsWritten()
    warnings = [warned.due("Q", far(time), 5) for time in (900_000, 959_999, 960_000, 960_001)]
    assert warnings == [True, False, True, False]


def test_each_query_and_partition_is_warned_of_by_itself():
    warned = WarningsWritten()
    partitions = [("Q", 0), ("Q", 1), ("R", 0), ("Q", 0), ("R", 0)]
    warnings = [warned.due(query, far(900_000, place), 5) for query, place in partitions]
    assert warnings == [True, True, True, False, False]
    assert not warned.due("S", FutureTimestamps(100), 5)


def test_times_within_the_bound_are_no_word_worth():
    ahead = FutureTimestamps(100)
    ahead.see(batch(100, 0), [100, 0], [0, 1])
    ahead.see(batch(), [], [])
    assert (ahead.count, ahead.latest_ms, ahead.text()) == (0, None, "")


def test_the_time_is_that_of_the_timestamp_column():
    """Records that are skipped (here a negative timestamp) move no place."""
    query = plan_of(STREAM.format(", PARTITIONS=1, TIMESTAMP='T'"), WINDOWED.format("GROUP BY K"))
    ahead = FutureTimestamps(100)
    load(query.plan).ingest(ahead).add(batch(-1, 10, 50), ignored)
    assert (ahead.count, ahead.latest_ms) == (1, 500)
    assert "offset 2" in ahead.text()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (WINDOWED.format("GROUP BY K"), True),
        (WINDOWED.format("GROUP BY K EMIT FINAL"), True),
        ("CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;", False),
        (
            "CREATE TABLE O WITH (RETENTION_MS=5) AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;",
            True,
        ),
        ("CREATE STREAM O AS SELECT K, T FROM S;", False),
        (
            "CREATE STREAM O AS SELECT S.K, S.T FROM S JOIN S2 WITHIN 1 HOUR ON S.K = S2.K;",
            True,
        ),
    ],
)
def test_only_queries_that_forget_by_time_are_watched(statement, expected):
    stream = STREAM.format(", PARTITIONS=1")
    other = stream.replace("STREAM S ", "STREAM S2 ").replace("'s'", "'s2'")
    assert follows_time(decoded(plan_of(stream, other, statement)).sink) is expected
