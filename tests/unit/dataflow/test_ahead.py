"""Records far ahead of the clock are counted and named; results do not depend on it."""

from __future__ import annotations

import pytest

from ksql.dataflow.ahead import Ahead
from ksql.dataflow.load import load
from ksql.dataflow.program import RawBatch
from ksql.dataflow.starts import plan_of as decoded
from ksql.plan.walk import follows_time
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


@pytest.mark.parametrize("buffering", ["0", "10000000"])
def test_the_latest_of_all_batches_is_named(buffering):
    query = plan_of(
        f"SET 'cache.max.bytes.buffering' = '{buffering}';",
        STREAM.format(", PARTITIONS=1"),
        WINDOWED.format("GROUP BY K"),
    )
    ahead = Ahead(100)
    ingest = load(query.plan).ingest(ahead)
    for each in (batch(100, 7), batch(101, 999, 5, first=2), batch(500, first=5)):
        ingest.add(each, ignored)
    assert (ahead.count, ahead.latest_ms) == (3, 999)
    assert 'topic "s", partition 3, offset 3' in ahead.text()


@pytest.mark.parametrize("buffering", ["0", "10000000"])
def test_a_record_that_where_leaves_out_moves_no_time(buffering):
    query = plan_of(
        f"SET 'cache.max.bytes.buffering' = '{buffering}';",
        STREAM.format(", PARTITIONS=1"),
        WINDOWED.format("WHERE T < 1000 GROUP BY K"),
    )
    ahead = Ahead(10)
    load(query.plan).ingest(ahead).add(batch(5, 100, 50, 9000), ignored)
    assert (ahead.count, ahead.latest_ms) == (1, 50)
    assert "offset 2" in ahead.text()


def test_times_within_the_bound_are_no_word_worth():
    ahead = Ahead(100)
    ahead.see(batch(100, 0), [100, 0], [0, 1])
    ahead.see(batch(), [], [])
    assert (ahead.count, ahead.latest_ms, ahead.text()) == (0, None, "")


def test_the_time_is_that_of_the_timestamp_column():
    """Records that are skipped (here a negative timestamp) move no place."""
    query = plan_of(STREAM.format(", PARTITIONS=1, TIMESTAMP='T'"), WINDOWED.format("GROUP BY K"))
    ahead = Ahead(100)
    load(query.plan).ingest(ahead).add(batch(-1, 10, 50), ignored)
    assert (ahead.count, ahead.latest_ms) == (1, 500)
    assert "offset 2" in ahead.text()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (WINDOWED.format("GROUP BY K"), True),
        (WINDOWED.format("GROUP BY K EMIT FINAL"), True),
        ("CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;", False),
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
