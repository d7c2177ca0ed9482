"""Table functions: where they may stand, what they give."""

from __future__ import annotations

import pytest

from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A ARRAY<INT>, B ARRAY<STRING>, N INT,
  ST ARRAY<STRUCT<X INT, Y STRING>>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, A ARRAY<INT>) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""
ROW = {"A": [1, 2], "B": ["x"], "N": 3, "ST": [{"X": 1, "Y": "a"}, None]}


def rows(select, *records):
    world = World(SETUP, f"CREATE STREAM X AS {select};")
    world.feed("s", *(records or [("k", ROW, 5)]))
    return world.out("X")


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT K, EXPLODE(A) FROM S", [{"KSQL_COL_0": 1}, {"KSQL_COL_0": 2}]),
        ("SELECT K, N, EXPLODE(A) AS E FROM S", [{"N": 3, "E": 1}, {"N": 3, "E": 2}]),
        (
            "SELECT K, EXPLODE(A) AS E, EXPLODE(B) AS F FROM S",
            [{"E": 1, "F": "x"}, {"E": 2, "F": None}],
        ),
        ("SELECT K, EXPLODE(A) * N + 1 AS E FROM S", [{"E": 4}, {"E": 7}]),
        ("SELECT K, EXPLODE(A) + EXPLODE(A) AS E FROM S", [{"E": 2}, {"E": 4}]),
        ("SELECT K, EXPLODE(ARRAY[N, A[1]]) AS E FROM S WHERE N = 3", [{"E": 3}, {"E": 1}]),
        ("SELECT K, EXPLODE(A) AS E FROM S WHERE N = 4", []),
        ("SELECT K, EXPLODE(ST)->* FROM S", [{"X": 1, "Y": "a"}, {"X": None, "Y": None}]),
        ("SELECT K, CAST(EXPLODE(A) AS STRING) AS E FROM S", [{"E": "1"}, {"E": "2"}]),
    ],
)
def test_values(select, expected):
    assert [value for _, value, _ in rows(select)] == expected


def test_key_time_and_columns_are_repeated():
    assert rows("SELECT *, EXPLODE(A) AS E FROM S") == [
        ("k", {**ROW, "E": 1}, 5),
        ("k", {**ROW, "E": 2}, 5),
    ]


def test_a_column_may_be_called_like_the_call():
    world = World(
        "CREATE STREAM S (K STRING KEY, A ARRAY<INT>, `EXPLODE(A)` INT) "
        "WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE STREAM X AS SELECT K, EXPLODE(A) AS E, `EXPLODE(A)` AS C FROM S;",
    )
    world.feed("s", ("k", {"A": [1], "EXPLODE(A)": 2}, 1))
    assert world.out("X") == [("k", {"E": 1, "C": 2}, 1)]


def test_no_values_no_rows():
    rows_ = rows(
        "SELECT K, EXPLODE(A) AS E, EXPLODE(B) AS F FROM S",
        ("a", {"A": None, "B": []}, 1),
        ("b", {"A": [], "B": ["y"]}, 2),
        ("c", None, 3),
    )
    assert rows_ == [("b", {"E": None, "F": "y"}, 2)]


def test_a_record_without_key_gives_records_without_key():
    rows_ = rows("SELECT K, EXPLODE(A) AS E FROM S", (None, {"A": [1]}, 1), ("k", {"A": [2]}, 2))
    assert rows_ == [(None, {"E": 1}, 1), ("k", {"E": 2}, 2)]


def test_the_new_key_is_the_one_of_partition_by():
    rows_ = rows("SELECT N, EXPLODE(B) AS E FROM S PARTITION BY N", ("k", {"N": 7, "B": ["y"]}, 1))
    assert rows_ == [("\0\0\0\7", {"E": "y"}, 1)]


def test_failing_table_function_is_logged_and_gives_no_rows():
    world = World(
        SETUP, "CREATE STREAM X AS SELECT K, CUBE_EXPLODE(A) AS C, EXPLODE(B) AS E FROM S;"
    )
    world.feed("s", ("k", {"A": [1] * 21, "B": ["y"]}, 1), ("l", {"A": [], "B": []}, 2))
    assert world.out("X") == [("k", {"C": None, "E": "y"}, 1), ("l", {"C": [], "E": None}, 2)]
    assert world.runner.errors() == [
        (
            "FlatMap",
            "Table function CUBE_EXPLODE threw an exception: "
            "CUBE_EXPLODE takes at most 20 columns, not 21",
        )
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("STREAM X AS SELECT K, EXPLODE(EXPLODE(ST)) FROM S", "cannot be nested: EXPLODE(EXPLODE"),
        ("STREAM X AS SELECT K, EXPLODE(N) FROM S", "Function 'explode' does not accept"),
        (
            "STREAM X AS SELECT K, EXPLODE(COLLECT_LIST(N)) FROM S GROUP BY K",
            "Table functions cannot be used with aggregations.",
        ),
        (
            "TABLE X AS SELECT K, COUNT(*) FROM S GROUP BY K HAVING EXPLODE(A) > 1",
            "Table functions cannot be used with aggregations.",
        ),
        ("STREAM X AS SELECT K, N FROM S WHERE EXPLODE(A) = 1", "WHERE does not support table"),
        ("STREAM X AS SELECT * FROM S PARTITION BY EXPLODE(A)", "PARTITION BY does not support"),
        (
            "TABLE X AS SELECT COUNT(*) FROM S GROUP BY EXPLODE(A)",
            "GROUP BY does not support table functions: EXPLODE is a table function.",
        ),
        ("TABLE X AS SELECT ID, EXPLODE(A) FROM T", "Table source is not supported with table"),
        (
            "STREAM X AS SELECT K, CASE WHEN N = 1 THEN EXPLODE(A) ELSE 0 END FROM S",
            "Table functions are not supported in CASE expressions: EXPLODE is a table function.",
        ),
        (
            "STREAM X AS SELECT K, TRANSFORM(A, Q => EXPLODE(ARRAY[Q])) FROM S",
            "Table functions are not supported in lambdas",
        ),
        (
            "STREAM X AS SELECT S.K, EXPLODE(S.A) FROM S JOIN T ON EXPLODE(S.B) = T.ID",
            "EXPLODE is a table function and cannot be used in this place.",
        ),
    ],
)
def test_refused(statement, message):
    assert message in World(SETUP).refuse(f"CREATE {statement};").text()
