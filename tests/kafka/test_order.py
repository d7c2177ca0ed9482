"""The order of results on a real service: over several partitions, and of changes in one batch."""

from __future__ import annotations

import pytest

from tests.kafka.records import create_topic, ordered_producer, read_all, unique
from tests.kafka.servers import EARLIEST
from tests.waits import PATIENCE_S, await_true

PARTITIONS = 6
RECORDS = 60
BUFFERED = EARLIEST | {"cache.max.bytes.buffering": "10000000"}


@pytest.fixture
def write(server):
    """Write records, each a partition, a time, a key and a value, in this order."""

    def written(topic, partitions, records):
        create_topic(server.bootstrap, topic, partitions)
        producer = ordered_producer(server.bootstrap)
        for partition, time, key, value in records:
            producer.produce(topic, value, key, partition, timestamp=time)
        assert producer.flush(PATIENCE_S) == 0

    return written


def test_records_of_one_key_from_several_partitions_keep_the_order_of_their_times(
    server, http, write
):
    """They lie there before the query does: one batch has them all. The last one is the row."""
    source, moved, latest = (unique(stem).upper() for stem in ("dep", "acc", "bal"))
    records = [
        (5 - n % PARTITIONS, 1_000 + n, None, f'{{"ACCOUNT": "S938807", "N": {n}}}')
        for n in range(RECORDS)
    ]
    write(source, PARTITIONS, sorted(records))
    http.ksql(
        f"CREATE STREAM {source} (ACCOUNT STRING, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        f"CREATE STREAM {moved} AS SELECT * FROM {source} PARTITION BY ACCOUNT;"
        f"CREATE SOURCE TABLE {latest} (ACCOUNT STRING PRIMARY KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{moved}', VALUE_FORMAT='JSON');"
    )
    await_true("all moved", lambda: len(read_all(server.bootstrap, moved)) == RECORDS)
    assert [seen.value["N"] for seen in read_all(server.bootstrap, moved)] == [*range(RECORDS)]
    last = [["S938807", RECORDS - 1]]
    await_true("the last one", lambda: http.rows(f"SELECT * FROM {latest};") == last)


def test_buffered_changes_of_a_batch_are_in_the_order_of_their_times(server, http, write):
    """As in the tutorial of COUNT: the first to change, The Godfather, is the last to come.

    All records are of one commit interval.
    """
    source, counted = unique("sales").upper(), unique("cnt").upper()
    titles = ["The Godfather", "Die Hard", "The Big Lebowski", "The Big Lebowski", "The Godfather"]
    records = [(0, 100 * n, title, '{"N": 1}') for n, title in enumerate(titles, 1)]
    write(source, 1, records)
    http.ksql(
        f"CREATE STREAM {source} (TITLE STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
        f"CREATE TABLE {counted} AS SELECT TITLE, COUNT(*) AS C FROM {source} GROUP BY TITLE;",
        BUFFERED,
    )
    await_true("all counted", lambda: len(read_all(server.bootstrap, counted)) == 3)
    seen = [(row.key, row.value["C"]) for row in read_all(server.bootstrap, counted)]
    assert seen == [("Die Hard", 1), ("The Big Lebowski", 2), ("The Godfather", 2)]
