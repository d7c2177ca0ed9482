"""How long the topics of results keep their records. Source: docs/sql/windows.md#windows."""

from __future__ import annotations

import pytest

from ksql.sql.catalog.model import Topic
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
    error = world_.refuse("CREATE TABLE Y WITH (RETENTION_MS=5) AS SELECT * FROM T;")
    assert error.message.endswith("Non-windowed tables do not support retention.")
