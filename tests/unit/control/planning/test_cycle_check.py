"""Queries that would read their own results, and declarations that a result would not follow."""

from __future__ import annotations

import pytest

from tests.unit.world import World

A = "CREATE STREAM A (K STRING KEY, N INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1);"
ALIAS = "CREATE STREAM A2 (K STRING KEY, N INT) WITH (KAFKA_TOPIC='a');"
B = "CREATE STREAM B AS SELECT * FROM A;"
T = "CREATE TABLE T (ID STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
WITH_A = "WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON')"


@pytest.mark.parametrize(
    ("before", "text", "way"),
    [
        ((A,), f"CREATE OR REPLACE STREAM A {WITH_A} AS SELECT * FROM A;", "A -> A"),
        ((A, B), f"CREATE OR REPLACE STREAM A {WITH_A} AS SELECT * FROM B;", "A -> B -> A"),
        ((A, B), "CREATE OR REPLACE STREAM B AS SELECT * FROM B;", "B -> B"),
        (
            (A, B, "CREATE STREAM C AS SELECT * FROM B;"),
            "CREATE OR REPLACE STREAM B AS SELECT * FROM C;",
            "B -> C -> B",
        ),
        ((A, ALIAS), f"CREATE OR REPLACE STREAM A {WITH_A} AS SELECT * FROM A2;", "A -> A"),
        ((A,), f"CREATE STREAM C {WITH_A} AS SELECT * FROM A;", "C -> C"),
        (
            (A, T, "CREATE STREAM J AS SELECT A.K, T.N FROM A JOIN T ON A.K = T.ID;"),
            f"CREATE STREAM C {WITH_A} AS SELECT * FROM J;",
            "C -> J -> C",
        ),
        ((A, B), "INSERT INTO A SELECT * FROM B;", "A -> B -> A"),
        ((A,), "INSERT INTO A SELECT * FROM A;", "A -> A"),
        (
            (T,),
            "CREATE OR REPLACE TABLE T WITH (KAFKA_TOPIC='t') AS SELECT * FROM T;",
            "T -> T",
        ),
    ],
)
def test_a_query_that_would_read_its_own_result(before, text, way):
    error = World(*before).refuse(text)
    assert error.message == f"The query would read its own result: {way}."
    assert error.hint


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM C AS SELECT * FROM A;",
        "INSERT INTO B SELECT * FROM A;",
        "CREATE OR REPLACE STREAM B AS SELECT * FROM A WHERE N > 1;",
    ],
)
def test_reading_others_is_no_cycle(text):
    World(A, B, text)


def test_a_loop_that_was_taken_apart():
    world = World(A, B, "CREATE STREAM C AS SELECT * FROM B;")
    world.run(f"DROP STREAM C; TERMINATE {world.query('B').id};")
    world.run(f"CREATE OR REPLACE STREAM A {WITH_A} AS SELECT * FROM B;")


# --- declarations


WIDER = "CREATE OR REPLACE STREAM B (K STRING KEY, N INT, M INT) WITH (KAFKA_TOPIC='B');"


def test_a_running_result_is_not_declared_wider():
    world = World(A, B)
    error = world.refuse(WIDER)
    assert "Query CSAS_B_1 writes 'B' and does not give it `M` INTEGER" in error.message
    world.run("CREATE OR REPLACE STREAM B AS SELECT * FROM A;")
    world.run("CREATE OR REPLACE STREAM B (K STRING KEY, N INT) WITH (KAFKA_TOPIC='B');")
    world.run("CREATE OR REPLACE STREAM B AS SELECT * FROM A WHERE N > 1;")


def test_a_result_whose_query_is_gone_may_be_declared_wider():
    world = World(A, B)
    world.run("TERMINATE ALL;" + WIDER)
    world.run("CREATE OR REPLACE STREAM B AS SELECT K, N, N + 1 AS M FROM A;")


def test_a_result_that_was_declared_wider_before_this_was_refused(monkeypatch):
    world = World(A, B)
    with monkeypatch.context() as patch:
        patch.setattr("ksql.control.planning.compare.check_growth", lambda *_: [])
        world.run(WIDER)
    error = world.refuse("CREATE OR REPLACE STREAM B AS SELECT * FROM A;")
    assert "missing or reordered: [`M` INTEGER]" in error.message
    assert "Not possible because of" not in error.detail
    world.run("CREATE OR REPLACE STREAM B AS SELECT K, N, N + 1 AS M FROM A;")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER STREAM D ADD COLUMN M INT;",
        "CREATE OR REPLACE STREAM D (K STRING KEY, N INT, M INT) "
        "WITH (KAFKA_TOPIC='d', VALUE_FORMAT='DELIMITED');",
    ],
)
def test_a_delimited_source_does_not_grow(text):
    world = World(
        "CREATE STREAM D (K STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='d', PARTITIONS=1, VALUE_FORMAT='DELIMITED');"
        "CREATE STREAM O AS SELECT * FROM D;"
    )
    error = world.refuse(text)
    assert "have as many fields as 'D' has columns: with `M` INTEGER" in error.message
