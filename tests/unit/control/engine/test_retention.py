"""How long the topics of results keep their records, and tables without windows their rows.

Source: docs/sql/windows.md#windows, docs/sql/sources.md#rows-that-expire.
"""

from __future__ import annotations

import pytest

from ksql.sql.catalog.model import Topic
from ksql.sql.plan.nodes import Aggregate
from ksql.sql.plan.walk import nodes
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s');
CREATE TABLE T (K STRING PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""
DAY = 86_400_000


def world(retention=None):
    world_ = World()
    configs = {} if retention is None else {"retention.ms": str(retention)}
    world_.topics.create(Topic("s", 1, 1, configs))
    world_.run(SETUP)
    return world_


@pytest.mark.parametrize(
    ("of_source", "statement", "expected"),
    [
        (None, "STREAM X AS SELECT * FROM S", 7 * DAY),
        (5, "STREAM X AS SELECT * FROM S", 5),
        (-1, "STREAM X AS SELECT * FROM S", -1),
        (5, "STREAM X WITH (RETENTION_MS=9) AS SELECT * FROM S", 9),
        (5, "TABLE X AS SELECT * FROM T", None),
        (5, "TABLE X AS SELECT K, COUNT(*) FROM S GROUP BY K", None),
        (
            5,
            "TABLE X AS SELECT K, COUNT(*) FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K",
            DAY,
        ),
        (
            None,
            "TABLE X AS SELECT K, COUNT(*) FROM S WINDOW TUMBLING "
            "(SIZE 1 HOUR, RETENTION 30 DAYS, GRACE PERIOD 1 HOUR) GROUP BY K",
            30 * DAY,
        ),
        (5, "TABLE X WITH (RETENTION_MS=9) AS SELECT K, COUNT(*) FROM S GROUP BY K", None),
        (
            5,
            "TABLE X WITH (RETENTION_MS=99000000) AS SELECT K, COUNT(*) FROM S "
            "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K",
            99_000_000,
        ),
        (None, "STREAM X (A INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1)", None),
        (None, "STREAM X (A INT) WITH (KAFKA_TOPIC='X', PARTITIONS=1, RETENTION_MS=7)", 7),
    ],
)
def test_retention(of_source, statement, expected):
    retention_ms = world(of_source)
    retention_ms.run(f"CREATE {statement};")
    configs = retention_ms.topics.known["X"].configs
    assert configs.get("retention.ms") == (None if expected is None else str(expected))


def test_an_existing_topic_keeps_its_own():
    world_ = world(5)
    error = world_.refuse("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', RETENTION_MS=6);")
    assert error.message.endswith("KSQL expects 6 retention (topic has 5).")
    world_.run("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', RETENTION_MS=5);")


def test_rows_of_an_aggregate_over_a_stream_may_expire():
    world_ = world(5)
    world_.topics.create(Topic("X", 1, 1, {"retention.ms": "7"}))
    world_.run("CREATE TABLE X WITH (RETENTION_MS=9) AS SELECT K, COUNT(*) FROM S GROUP BY K;")
    world_.run("CREATE TABLE Y WITH (RETENTION_MS=9) AS SELECT K, COUNT(*) FROM S GROUP BY K;")
    assert world_.topics.known["Y"].configs["cleanup.policy"] == "compact"
    for name in "XY":
        [aggregate] = [n for n in nodes(world_.plan(name).sink) if isinstance(n, Aggregate)]
        assert (aggregate.ttl_ms, aggregate.window) == (9, None)


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("TABLE Y WITH (RETENTION_MS=5) AS SELECT * FROM T", "Its rows follow those of the tables"),
        (
            "TABLE Y WITH (RETENTION_MS=5) AS SELECT A, COUNT(*) AS C FROM T GROUP BY A",
            "Its rows count rows of a table, which may still be there.",
        ),
        (
            "TABLE Y (K STRING PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='t', RETENTION_MS=5)",
            "No query writes the topic of this table",
        ),
    ],
)
def test_other_tables_without_windows_have_none(statement, detail):
    error = world(5).refuse(f"CREATE {statement};")
    assert error.message.endswith("Non-windowed tables do not support retention.")
    assert error.detail.startswith(detail)
    assert "RETENTION_MS" in error.hint


@pytest.mark.parametrize("retention_ms", [0, -1])
def test_rows_stay_for_at_least_a_millisecond(retention_ms):
    error = world(5).refuse(
        f"CREATE TABLE Y WITH (RETENTION_MS={retention_ms}) AS SELECT K, COUNT(*) AS C FROM S "
        "GROUP BY K;"
    )
    assert error.message.startswith(f"Invalid value {retention_ms} for configuration RETENTION_MS")
