from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from tests.unit.serving.pulls import answer, bound
from tests.unit.world import World

SETUP = """
CREATE STREAM RIDES (ID STRING KEY, BIKE STRING, DOCK INT, M DOUBLE, TAGS ARRAY<STRING>)
  WITH (KAFKA_TOPIC='rides', PARTITIONS=1);
CREATE TABLE R AS SELECT ID, LATEST_BY_OFFSET(BIKE) AS BIKE, LATEST_BY_OFFSET(DOCK) AS DOCK,
  LATEST_BY_OFFSET(M) AS M, LATEST_BY_OFFSET(TAGS) AS TAGS FROM RIDES GROUP BY ID;
"""


def world():
    world_ = World(SETUP)
    world_.feed(
        "rides",
        ("r1", {"BIKE": "x", "DOCK": 2, "M": 1.5, "TAGS": ["a"]}, 1),
        ("r2", {"BIKE": "y", "DOCK": 1, "M": 2.5, "TAGS": []}, 2),
        ("r3", {"BIKE": "x", "DOCK": 1, "M": 0.5, "TAGS": []}, 3),
        ("r4", {"BIKE": "z", "M": 9.0, "TAGS": []}, 4),
        ("r5", {"DOCK": 2, "TAGS": []}, 5),
    )
    return world_


WORLD = world()


@pytest.mark.parametrize(
    ("clauses", "ids"),
    [
        ("ORDER BY ID", "r1 r2 r3 r4 r5"),
        ("ORDER BY ID DESC", "r5 r4 r3 r2 r1"),
        ("ORDER BY DOCK, ID", "r2 r3 r1 r5 r4"),  # NULL is the greatest value
        ("ORDER BY DOCK DESC, ID DESC", "r4 r5 r1 r3 r2"),
        ("ORDER BY DOCK NULLS FIRST, ID", "r4 r2 r3 r1 r5"),
        ("ORDER BY DOCK DESC NULLS LAST, ID", "r1 r5 r2 r3 r4"),
        ("ORDER BY BIKE, M DESC", "r1 r3 r2 r4 r5"),
        ("ORDER BY -M NULLS LAST", "r4 r2 r1 r3 r5"),
        ("ORDER BY M * 2 + 1", "r3 r1 r2 r4 r5"),
        ("ORDER BY M DESC", "r5 r4 r2 r1 r3"),
        ("ORDER BY ROWTIME DESC", "r5 r4 r3 r2 r1"),
        ("ORDER BY 1 DESC", "r5 r4 r3 r2 r1"),
        ("WHERE DOCK IS NOT NULL ORDER BY ID DESC LIMIT 2", "r5 r3"),
        ("ORDER BY ID LIMIT 2 OFFSET 1", "r2 r3"),
        ("ORDER BY ID DESC LIMIT 0", ""),
        ("ORDER BY ID OFFSET 3", "r4 r5"),
        ("ORDER BY ID OFFSET 7", ""),
        ("ORDER BY DOCK, ID LIMIT 3", "r2 r3 r1"),
        ("ORDER BY DOCK DESC LIMIT 9", "r4 r1 r5 r2 r3"),  # what is equal stays as it was stored
        ("OFFSET 4", "r5"),
        ("LIMIT 2 OFFSET 2", "r3 r4"),
        ("WHERE ID IN ('r2', 'r1') ORDER BY ID", "r1 r2"),
    ],
)
def test_order_offset_limit(clauses, ids):
    rows = answer(f"SELECT ID FROM R {clauses};", WORLD)
    assert " ".join(row[0] for row in rows) == ids


def test_an_alias_is_meant_before_a_column():
    text = "SELECT ID, 10 - DOCK AS DOCK FROM R WHERE DOCK > 0 ORDER BY DOCK, ID;"
    assert answer(text, WORLD) == [("r1", 8), ("r5", 8), ("r2", 9), ("r3", 9)]


def test_columns_of_order_by_only_are_not_in_the_result():
    query, _ = bound("SELECT BIKE FROM R WHERE M > 1 ORDER BY M * DOCK, M;", WORLD)
    assert [column.name for column in query.columns] == ["BIKE"]
    assert [row.values for batch in query.batches() for row in batch] == [("y",), ("x",), ("z",)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) AS C FROM R;", [(5,)]),
        ("SELECT COUNT(*) AS C, MAX(M) AS M FROM R WHERE DOCK = 7;", [(0, None)]),
        ("SELECT BIKE, COUNT(*) AS C FROM R GROUP BY BIKE ORDER BY BIKE;",
         [("x", 2), ("y", 1), ("z", 1)]),
        ("SELECT BIKE, SUM(M) AS M FROM R GROUP BY BIKE HAVING COUNT(*) > 1;", [("x", 2.0)]),
        ("SELECT DOCK, MIN(M) AS LOW, MAX(M) - MIN(M) AS SPAN FROM R GROUP BY DOCK ORDER BY DOCK;",
         [(1, 0.5, 2.0), (2, 1.5, 0.0)]),
        ("SELECT UCASE(BIKE) AS B, COLLECT_LIST(ID) AS IDS FROM R GROUP BY UCASE(BIKE) ORDER BY B;",
         [("X", ["r1", "r3"]), ("Y", ["r2"]), ("Z", ["r4"])]),
        ("SELECT BIKE, DOCK, COUNT(*) AS C FROM R GROUP BY BIKE, DOCK ORDER BY BIKE, DOCK;",
         [("x", 1, 1), ("x", 2, 1), ("y", 1, 1)]),  # a NULL among the values: in no group
        ("SELECT BIKE FROM R WHERE BIKE IS NOT NULL GROUP BY BIKE ORDER BY COUNT(*) DESC, BIKE;",
         [("x",), ("y",), ("z",)]),
        ("SELECT BIKE, AVG(M) AS A FROM R GROUP BY BIKE ORDER BY A DESC LIMIT 1 OFFSET 1;",
         [("y", 2.5)]),
        ("SELECT TOPK(M, 2) AS T FROM R;", [([9.0, 2.5],)]),
        ("SELECT BIKE, ROWTIME, COUNT(*) AS C FROM R GROUP BY BIKE ORDER BY ROWTIME;",
         [("y", 2, 1), ("x", 3, 2), ("z", 4, 1)]),
    ],
)  # fmt: skip
def test_groups(text, rows):
    assert answer(text, WORLD) == rows


def test_the_groups_are_the_key_of_the_result():
    query, _ = bound("SELECT COUNT(*) AS C, BIKE AS B FROM R GROUP BY BIKE;", WORLD)
    assert [(c.name, c.role.name) for c in query.columns] == [("C", "VALUE"), ("B", "KEY")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ID FROM R ORDER BY TAGS;", "ORDER BY needs values that have an order: TAGS is"),
        ("SELECT ID FROM R ORDER BY 2;", "ORDER BY 2: the result has 1 columns."),
        ("SELECT ID FROM R ORDER BY X;", "ORDER BY column 'X' cannot be resolved"),
        ("SELECT ID FROM R ORDER BY ROWOFFSET;", "following columns in ORDER BY clauses"),
        ("SELECT ID FROM R ORDER BY COUNT(*);",
         "Non-aggregate SELECT expression(s) not part of GROUP BY: ID"),
        ("SELECT COUNT(*) FROM R GROUP BY BIKE ORDER BY DOCK;",
         "Non-aggregate ORDER BY expression not part of GROUP BY: DOCK"),
        ("SELECT BIKE, M, COUNT(*) FROM R GROUP BY BIKE;",
         "Non-aggregate SELECT expression(s) not part of GROUP BY: M"),
        ("SELECT COUNT(*) FROM R GROUP BY BIKE, BIKE;", "Duplicate GROUP BY expression: BIKE"),
        ("SELECT COUNT(*) FROM R GROUP BY COUNT(*);",
         "GROUP BY does not support aggregate functions"),
        ("SELECT COUNT(*) FROM R GROUP BY MAP('a' := DOCK);",
         "Map keys, including types that contain maps, are not supported"),
        ("SELECT COUNT(*) FROM R GROUP BY BIKE HAVING BIKE;", "Type error in HAVING expression"),
        ("SELECT ID, BIKE AS ID FROM R ORDER BY ID;", "Duplicate value columns"),
    ],
)  # fmt: skip
def test_refused(text, message):
    with pytest.raises(KsqlError) as caught:
        bound(text, WORLD)
    assert message in caught.value.text()


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("SELECT ID, BIKE FROM R ORDER BY BIKE;", "ORDER BY"),
        ("SELECT ID, BIKE FROM R ORDER BY BIKE LIMIT 1000;", "ORDER BY"),
        ("SELECT ID, COUNT(*) FROM R GROUP BY ID;", "GROUP BY"),
        ("SELECT COLLECT_LIST(BIKE) AS L FROM R;", "GROUP BY"),
    ],
)
def test_the_rows_that_are_kept_have_a_bound(text, clause):
    big = World(SETUP)
    big.feed("rides", *((f"r{n}", {"BIKE": str(n) * 500}, n) for n in range(400)))
    query, _ = bound(text, big, server={"ksql.query.pull.state.max.bytes": "100000"})
    with pytest.raises(KsqlError) as caught:
        list(query.batches())
    assert caught.value.message == (
        f"The rows of this pull query's {clause} take more than 100000 bytes of memory"
    )
    assert "ksql.query.pull.state.max.bytes" in caught.value.hint


def test_a_heap_of_the_limit_is_within_the_bound():
    big = World(SETUP)
    big.feed("rides", *((f"r{n:03}", {"BIKE": str(n) * 500}, n) for n in range(400)))
    text = "SELECT ID, BIKE FROM R ORDER BY ID DESC LIMIT 3;"
    query, _ = bound(text, big, server={"ksql.query.pull.state.max.bytes": "100000"})
    values = [row.values[0] for batch in query.batches() for row in batch]
    assert values == ["r399", "r398", "r397"]


def test_a_limit_stops_reading():
    big = World(SETUP)
    big.feed("rides", *((f"r{n:05}", {"DOCK": n}, n) for n in range(5000)))
    query, tables = bound("SELECT ID FROM R LIMIT 2;", big)
    taken: list[object] = []
    scan = tables.store.scan

    def counted():
        for row in scan():
            taken.append(row)
            yield row

    tables.store.scan = counted
    assert [len(batch) for batch in query.batches()] == [2]
    assert len(taken) <= 1000


def test_a_reader_that_left_ends_the_scan():
    big = World(SETUP)
    big.feed("rides", *((f"r{n:05}", {"DOCK": n}, n) for n in range(5000)))
    for text in ("SELECT ID FROM R;", "SELECT ID FROM R ORDER BY ID;", "SELECT COUNT(*) FROM R;"):
        query, tables = bound(text, big)
        taken: list[object] = []
        scan = tables.store.scan

        def counted(scan=scan, taken=taken):
            for row in scan():
                taken.append(row)
                yield row

        tables.store.scan = counted
        batches = query.batches()
        next(batches)
        query.close()
        assert list(batches) == []
        assert len(taken) == 1000


def test_missing_rows_are_searched_in_steps():
    big = World(SETUP)
    big.feed("rides", *((f"r{n:05}", {"DOCK": n}, n) for n in range(2500)))
    query, _ = bound("SELECT ID FROM R WHERE DOCK < 0;", big)
    assert [len(batch) for batch in query.batches()] == [0, 0, 0]
