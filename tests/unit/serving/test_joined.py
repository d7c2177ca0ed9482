from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.functions.registry import BUILTINS
from ksql.views.materialized_view import MORE
from tests.unit.serving.pulls import Stores, answer, bind_pull, bound
from tests.unit.world import World

SETUP = """
CREATE STREAM OS (ID STRING KEY, BY_ STRING, N INT) WITH (KAFKA_TOPIC='os', PARTITIONS=1);
CREATE STREAM PS (ID STRING KEY, NAME STRING) WITH (KAFKA_TOPIC='ps', PARTITIONS=1);
CREATE TABLE O AS SELECT ID, LATEST_BY_OFFSET(BY_) AS BY_, SUM(N) AS N FROM OS GROUP BY ID;
CREATE TABLE P AS SELECT ID, LATEST_BY_OFFSET(NAME) AS NAME FROM PS GROUP BY ID;
CREATE TABLE Q AS SELECT ID, COUNT(*) AS C FROM PS GROUP BY ID;
CREATE TABLE WO AS SELECT ID, SUM(N) AS N FROM OS
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY ID;
CREATE TABLE WP AS SELECT ID, COUNT(*) AS C FROM PS
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY ID;
CREATE TABLE RAW (ID STRING PRIMARY KEY, X INT) WITH (KAFKA_TOPIC='raw', PARTITIONS=1);
"""


def world():
    world_ = World(SETUP)
    world_.feed(
        "os",
        ("o1", {"BY_": "p1", "N": 1}, 1),
        ("o2", {"BY_": "p2", "N": 2}, 2),
        ("o3", {"BY_": "p9", "N": 3}, 3),
        ("o4", {"N": 4}, 4),
        ("p1", {"BY_": "p2", "N": 5}, 15),
    )
    world_.feed("ps", ("p1", {"NAME": "Ann"}, 5), ("p2", {"NAME": "Bob"}, 6), ("p1", {}, 16))
    return world_


WORLD = world()
FK = "FROM O JOIN P ON O.BY_ = P.ID"
PK = "JOIN P ON O.ID = P.ID"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"SELECT O.ID, NAME {FK} ORDER BY O.ID;", [("o1", "Ann"), ("o2", "Bob"), ("p1", "Bob")]),
        ("SELECT O.ID, NAME FROM O LEFT JOIN P ON O.BY_ = P.ID WHERE N < 5 ORDER BY O.ID;",
         [("o1", "Ann"), ("o2", "Bob"), ("o3", None), ("o4", None)]),
        (f"SELECT O.ID, NAME FROM O {PK};", [("p1", "Ann")]),
        (f"SELECT P.ID AS I, N, NAME FROM O RIGHT {PK} ORDER BY NAME;",
         [("p1", 5, "Ann"), ("p2", None, "Bob")]),
        (f"SELECT ROWKEY AS K, N, NAME FROM O FULL OUTER {PK} ORDER BY K;",
         [("o1", 1, None), ("o2", 2, None), ("o3", 3, None), ("o4", 4, None), ("p1", 5, "Ann"),
          ("p2", None, "Bob")]),
        (f"SELECT NAME, COUNT(*) AS C, SUM(N) AS N {FK} GROUP BY NAME ORDER BY C DESC;",
         [("Bob", 2, 7), ("Ann", 1, 1)]),
        (f"SELECT * {FK} WHERE O.ID = 'o2';", [("o2", "p2", 2, "p2", "Bob")]),
        (f"SELECT O.ID {FK} WHERE UCASE(NAME) = 'BOB' AND N > 2;", [("p1",)]),
        ("SELECT O.ID, NAME, C FROM O JOIN P ON O.BY_ = P.ID LEFT JOIN Q ON O.ID = Q.ID "
         "ORDER BY O.ID;",
         [("o1", "Ann", None), ("o2", "Bob", None), ("p1", "Bob", 2)]),
        ("SELECT WO.ID, WO.WINDOWSTART AS S, N, C FROM WO JOIN WP ON WO.ID = WP.ID;",
         [("p1", 10, 5, 1)]),
    ],
)  # fmt: skip
def test_rows(text, rows):
    assert answer(text, WORLD) == rows


class Pair:
    """A ``Stores`` for each table of a join."""

    def __init__(self):
        self.tables = {}

    def stores(self, source):
        stores_ = self.tables.setdefault(source.name, Stores(WORLD))
        return stores_.stores(source)


@pytest.mark.parametrize(
    ("text", "scans"),
    [
        (f"SELECT * {FK};", {"O": 1, "P": 0}),
        (f"SELECT * {FK} WHERE O.ID = 'o2';", {"O": 0, "P": 0}),
        (f"SELECT * {FK} WHERE P.ID = 'p2';", {"O": 1, "P": 0}),
        (f"SELECT * FROM O {PK} WHERE P.ID = 'p1';", {"O": 0, "P": 0}),
        (f"SELECT * FROM O LEFT {PK} WHERE O.ID IN ('p1', 'o1');", {"O": 0, "P": 0}),
        (f"SELECT * FROM O RIGHT {PK} WHERE P.ID = 'p1';", {"O": 0, "P": 0}),
        (f"SELECT * FROM O RIGHT {PK};", {"O": 0, "P": 1}),
        (f"SELECT * FROM O FULL OUTER {PK} WHERE O.ID = 'p1';", {"O": 1, "P": 1}),
    ],
)
def test_only_one_table_is_scanned_and_that_only_without_a_key(text, scans):
    pair = Pair()
    args = WORLD.parse(text), WORLD.catalog, BUILTINS, WORLD.settings, pair, "pull_1"
    list(bind_pull(*args).batches())
    assert {name: each.scans for name, each in pair.tables.items()} == scans


def test_the_header():
    query, _ = bound(f"SELECT O.ID, P.ID AS PID, NAME FROM O {PK};", WORLD)
    assert [(c.name, c.role.name) for c in query.columns] == [
        ("O_ID", "KEY"),
        ("PID", "KEY"),
        ("NAME", "VALUE"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM O JOIN OS WITHIN 1 SECOND ON O.ID = OS.ID;",
         "Pull queries don't support JOIN clauses. " + MORE),
        ("SELECT * FROM O JOIN RAW ON O.ID = RAW.ID;", "The `RAW` table isn't queryable."),
        ("SELECT * FROM O JOIN P ON O.ID = P.NAME;", "Invalid join condition"),
        ("SELECT * FROM O JOIN O ON O.ID = O.ID;", "self joins are not yet supported"),
        (f"SELECT * FROM O RIGHT {PK} JOIN Q ON P.ID = Q.ID;",
         "RIGHT and FULL joins of two tables only"),
        ("SELECT NAME FROM O JOIN P ON CAST(O.ROWOFFSET AS STRING) = P.ID;",
         "don't support the following columns in JOIN clauses: `ROWOFFSET`"),
        (f"SELECT ID FROM O {PK};", "Column 'ID' is ambiguous"),
    ],
)  # fmt: skip
def test_refused(text, message):
    with pytest.raises(KsqlError) as caught:
        bound(text, WORLD)
    assert message in caught.value.text()


def test_without_scans_the_first_table_needs_its_key():
    scans = {"ksql.query.pull.table.scan.enabled": "false"}
    bound(f"SELECT * {FK} WHERE O.ID = 'o2';", WORLD, **scans)
    with pytest.raises(KsqlError, match="Query requires table scan to be enabled"):
        bound(f"SELECT * {FK} WHERE P.ID = 'p2';", WORLD, **scans)
