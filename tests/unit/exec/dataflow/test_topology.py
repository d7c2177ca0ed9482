from __future__ import annotations

import pytest

from ksql.exec.dataflow.query_start import plan_of
from ksql.exec.dataflow.topology import topology
from ksql.functions.registry import BUILTINS
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE TABLE T (ID STRING PRIMARY KEY, B BIGINT, D STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=2);
CREATE TABLE U (ID STRING PRIMARY KEY, C BIGINT) WITH (KAFKA_TOPIC='u', PARTITIONS=2);
"""


@pytest.mark.parametrize(
    ("statement", "lines"),
    [
        (
            "CREATE STREAM X AS SELECT K, A FROM S WHERE A > 1;",
            ["source 0: topic s (STREAM S)", "sink: topic X, from source 0"],
        ),
        (
            "CREATE TABLE X AS SELECT A + 1 AS N, COUNT(*) AS C, SUM(A) AS D FROM S "
            "WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 2 DAYS, GRACE PERIOD 1 HOUR) GROUP BY A + 1;",
            [
                "source 0: topic s (STREAM S)",
                "stream time: of each of 2 partitions, as in Kafka Streams",
                "stage 0: AGGREGATE, over 2 buckets",
                "  from source 0 by (A + 1), repartitioned, combined by window before the exchange",
                "  state: slot 0 COUNT(), slot 1 SUM(A); windows are kept for 172800000 ms",
                "sink: topic X, from stage 0, one change per key and commit interval",
            ],
        ),
        (
            "CREATE TABLE X AS SELECT K, COUNT(*) AS C FROM S "
            "WINDOW SESSION (1 HOUR) GROUP BY K EMIT FINAL;",
            [
                "source 0: topic s (STREAM S)",
                "stream time: of each of 2 partitions, as in Kafka Streams",
                "stage 0: AGGREGATE, over 2 buckets",
                "  from source 0 by K, "
                "not combined before the exchange: sessions grow record by record",
                "  state: slot 0 COUNT(); sessions are kept for 3600000 ms",
                "sink: topic X, from stage 0, each window once, when it has closed",
            ],
        ),
        (
            "CREATE TABLE X WITH (RETENTION_MS=5) AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;",
            [
                "source 0: topic s (STREAM S)",
                "stream time: of each of 2 partitions, as in Kafka Streams",
                "stage 0: AGGREGATE, over 2 buckets",
                "  from source 0 by K, not combined before the exchange: rows expire record by "
                "record",
                "  state: slot 0 COUNT(); rows are kept for 5 ms after their last update",
                "sink: topic X, from stage 0, one change per key and commit interval",
            ],
        ),
        (
            "CREATE STREAM X AS SELECT S.K, T.B FROM S JOIN T ON S.K = T.ID;",
            [
                "source 0: topic s (STREAM S)",
                "source 1: topic t (TABLE T)",
                "stage 0: STREAM-TABLE JOIN, over 2 buckets",
                "  from source 0 by S_K",
                "  from source 1 by T_ID",
                "  state: the table's rows by key",
                "sink: topic X, from stage 0",
            ],
        ),
        (
            "CREATE STREAM X AS SELECT S.K, U.C FROM S JOIN T ON S.K = T.ID "
            "LEFT JOIN U ON T.ID = U.ID;",
            [
                "source 0: topic s (STREAM S)",
                "source 1: topic t (TABLE T)",
                "source 2: topic u (TABLE U)",
                "stage 0: STREAM-TABLE JOIN, then STREAM-TABLE JOIN, over 2 buckets",
                "  from source 0 by S_K",
                "  from source 1 by T_ID",
                "  from source 2 by U_ID",
                "  state: the table's rows by key",
                "  state: the table's rows by key",
                "sink: topic X, from stage 0",
            ],
        ),
        (
            "CREATE STREAM X AS SELECT U.ID, U.C FROM S LEFT JOIN T ON S.K = T.ID "
            "JOIN U ON T.D = U.ID;",
            [
                "source 0: topic s (STREAM S)",
                "source 1: topic t (TABLE T)",
                "source 2: topic u (TABLE U)",
                "stage 0: STREAM-TABLE JOIN, over 2 buckets",
                "  from source 0 by S_K",
                "  from source 1 by T_ID",
                "  state: the table's rows by key",
                "stage 1: STREAM-TABLE JOIN, over 2 buckets",
                "  from stage 0 by T_D",
                "  from source 2 by U_ID",
                "  state: the table's rows by key",
                "sink: topic X, from stage 1",
            ],
        ),
        (
            "CREATE TABLE X AS SELECT B, COUNT(*) AS C FROM T GROUP BY B;",
            [
                "source 0: topic t (TABLE T)",
                "stage 0: TABLE T, over 2 buckets",
                "  from source 0 by ID",
                "  state: the rows by key, for what a change replaces",
                "stage 1: AGGREGATE, over 2 buckets",
                "  from stage 0 by B; old and new row of a group in one record (KIP-904)",
                "  state: slot 0 COUNT()",
                "sink: topic X, from stage 1, one change per key and commit interval",
            ],
        ),
    ],
)
def test_each_step_is_reported(statement, lines):
    world = World(SETUP, statement)
    [query] = world.engine.catalog.queries.values()
    assert topology(plan_of(query), BUILTINS).split("\n") == lines
