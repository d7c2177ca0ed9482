"""What a pull query says of windows that RETENTION hides: when, and of which."""

from __future__ import annotations

import pytest

from ksql.serving.query_service import QueryService
from ksql.serving.results import notes_of
from ksql.views.store_config import hidden_note
from ksql.views.stores.base import HiddenWindows, united
from qtt.memory import MemoryTables
from tests.unit.world import World

HOUR = 3_600_000
SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE W WITH (KAFKA_TOPIC='w') AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 0 SECONDS) GROUP BY K;
CREATE TABLE V AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 0 SECONDS) GROUP BY K;
CREATE TABLE X AS SELECT K, COUNT(*) AS C FROM S
  WINDOW SESSION (1 HOUR, GRACE PERIOD 0 SECONDS) GROUP BY K;
CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
"""
EARLY, LATE = ("a", {"A": 1}, HOUR + 5), ("b", {"A": 1}, 7 * HOUR)
NOTE = (
    "RETENTION 1 HOUR hides windows that begin from 1970-01-01T01:00:00.000 to "
    "1970-01-01T06:00:00.000; the topic w may still have them"
)
SESSIONS = (
    "RETENTION 1 HOUR hides sessions that end from 1970-01-01T01:00:00.005 to "
    "1970-01-01T06:00:00.000; the topic X may still have them"
)


def rows_of(text, *records):
    """The rows and the notes of a pull query."""
    world = World(SETUP)
    world.feed("s", *records)
    reads = QueryService(
        world.engine, None, None, MemoryTables(world.engine, world.topics), lambda: 1_000
    )

    def answered():
        stream = reads.open(text, world.services, world.settings, {}, {})
        rows = [row.values for batch in stream.batches() for row in batch]
        assert stream.final_message is None  # the form of the answer has a place for notes
        return rows, notes_of(stream)

    results = answered()
    assert answered() == results  # by the plan that is kept, if it is
    return results


@pytest.mark.parametrize(
    "where",
    [
        "",
        "WHERE K = 'a'",
        "WHERE WINDOWSTART <= 3600000 AND K = 'a'",
        "WHERE K = 'a' AND WINDOWEND > 0",
        "WHERE WINDOWSTART < 99999999 LIMIT 1",
    ],
)
def test_a_query_that_lacks_windows_says_so(where):
    rows, notes = rows_of(f"SELECT K, C FROM W {where};", EARLY, LATE)
    assert ("a", 1) not in rows
    assert notes == [NOTE]


@pytest.mark.parametrize(
    "where",
    [
        "WHERE K = 'b' AND WINDOWSTART > 21600000",
        "WHERE K = 'a' AND WINDOWSTART < 3600000",
        "WHERE K = 'a' AND WINDOWEND > 25200000",
        "WHERE WINDOWSTART = 25200000",
    ],
)
def test_a_query_that_asks_for_other_windows_says_nothing(where):
    assert rows_of(f"SELECT K, C FROM W {where};", EARLY, LATE)[1] == []


@pytest.mark.parametrize("table", ["W", "X"])
def test_a_table_that_shows_all_that_its_topic_has_says_nothing(table):
    rows, notes = rows_of(f"SELECT K, C FROM {table};", LATE, ("a", {"A": 1}, 7 * HOUR + 5))
    assert (sorted(rows), notes) == ([("a", 1), ("b", 1)], [])


def test_of_sessions_the_ends_count():
    assert rows_of("SELECT K, C FROM X;", EARLY, LATE) == ([("b", 1)], [SESSIONS])
    assert rows_of("SELECT K FROM X WHERE K = 'a' AND WINDOWEND < 3600000;", EARLY, LATE) == (
        [],
        [],
    )


def test_tables_without_windows_hide_nothing():
    assert rows_of("SELECT K, C FROM N WHERE K = 'a';", EARLY, LATE) == ([("a", 1)], [])


def test_each_table_of_a_join_says_it():
    rows, notes = rows_of("SELECT W.K, W.C, V.C FROM W JOIN V ON W.K = V.K;", EARLY, LATE)
    assert (rows, notes) == ([("b", 1, 1)], [NOTE, NOTE.replace("topic w", "topic V")])


@pytest.mark.parametrize(
    ("retention_ms", "text"),
    [
        (1, "1 MILLISECOND"),
        (1_500, "1500 MILLISECONDS"),
        (90_000, "90 SECONDS"),
        (5_400_000, "90 MINUTES"),
        (7_200_000, "2 HOURS"),
        (604_800_000, "7 DAYS"),
    ],
)
def test_the_retention_is_written_as_in_a_statement(retention_ms, text):
    source = World(SETUP).catalog.source("W")
    assert f"RETENTION {text} hides" in hidden_note(source, HiddenWindows(0, 0, retention_ms))


def test_partitions_have_one_note():
    assert united([None, HiddenWindows(5, 7, 1), HiddenWindows(3, 4, 1)]) == HiddenWindows(3, 7, 1)
    assert united([None]) is None
