from __future__ import annotations

import pytest

from ksql.analysis import bound as b
from ksql.base.errors import KsqlError
from ksql.functions.registry import BUILTINS
from ksql.query.pull import TableNotReady, bind_pull, check_stream
from ksql.query.where import MORE, key_lookups
from ksql.stores.memory import MemoryStore
from ksql.types.model import BIGINT, STRING
from ksql.types.schema import Column, Role
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
CREATE TABLE M WITH (KEY_FORMAT='JSON') AS SELECT K, A, COUNT(*) AS C FROM S GROUP BY K, A;
"""


class Stores:
    """What a table's topic holds, in one store; counts how it is read."""

    def __init__(self, world):
        self.world = world
        self.scans = 0

    def stores(self, source):
        outer = self

        class Counting(MemoryStore):
            def scan(self):
                outer.scans += 1
                return super().scan()

        store = Counting()
        records = self.world.topics.records.get(source.topic, [])
        store.put((r.key, r.value, r.timestamp) for r in records)
        store.commit(len(records))
        return {0: store}


def world():
    found = World(SETUP)
    found.feed("s", ("a", {"A": 1}, 1), ("b", {"A": 2}, 2), ("a", {"A": 3}, 13))
    return found


WORLD = world()


def bound(text, **settings):
    tables = Stores(WORLD)
    statement = WORLD.parse(text)
    query = bind_pull(
        statement,
        WORLD.catalog,
        BUILTINS,
        WORLD.settings.with_overrides(settings),
        tables,
        "pull_1",
    )
    return query, tables


def pull(text, **settings):
    query, tables = bound(text, **settings)
    rows = sorted((row.values for batch in query.batches() for row in batch), key=repr)
    return rows, tables.scans


@pytest.mark.parametrize(
    ("text", "rows", "scans"),
    [
        ("SELECT * FROM N WHERE K = 'a';", [("a", 2, 4)], 0),
        ("SELECT * FROM N WHERE 'a' = K;", [("a", 2, 4)], 0),
        ("SELECT * FROM N WHERE K = 'x';", [], 0),
        ("SELECT C, K FROM N WHERE K IN ('a', 'b', 'a', 'x');", [(1, "b"), (2, "a")], 0),
        ("SELECT K FROM N WHERE K = 'a' AND C > 5;", [], 0),
        ("SELECT K, C * 2 AS D FROM N WHERE K = 'a' AND A = 4;", [("a", 4)], 0),
        ("SELECT K FROM N WHERE C > 1;", [("a",)], 1),
        ("SELECT K FROM N WHERE K = 'a' OR K = 'b';", [("a",), ("b",)], 0),
        ("SELECT K FROM N WHERE (K = 'a' AND C > 1) OR K IN ('a', 'x');", [("a",)], 0),
        ("SELECT K FROM N WHERE K = 'a' OR C > 1;", [("a",)], 1),
        ("SELECT K FROM N;", [("a",), ("b",)], 1),
        ("SELECT UCASE(K) AS U, ROWTIME FROM N WHERE K = 'b';", [("B", 2)], 0),
        ("SELECT * FROM W WHERE K = 'a';", [("a", 0, 10, 1), ("a", 10, 20, 1)], 0),
        ("SELECT K, WINDOWSTART, C FROM W WHERE K = 'a' AND WINDOWSTART >= 10;",
         [("a", 10, 1)], 0),
        ("SELECT C FROM W WHERE K = 'a' AND WINDOWSTART > 0 AND WINDOWSTART <= 10 "
         "AND WINDOWEND = 20;", [(1,)], 0),
        ("SELECT K FROM W WHERE K = 'a' AND WINDOWSTART BETWEEN 5 AND 10;", [("a",)], 0),
        ("SELECT K FROM W WHERE K = 'a' AND WINDOWSTART IN (0, 10);", [("a",), ("a",)], 0),
        ("SELECT K FROM W WHERE WINDOWSTART = 0 AND WINDOWSTART >= 0;", [("a",), ("b",)], 1),
        ("SELECT * FROM W;", [("a", 0, 10, 1), ("a", 10, 20, 1), ("b", 0, 10, 1)], 1),
        ("SELECT C FROM M WHERE K = 'a' AND A = 3;", [(1,)], 0),
        ("SELECT C FROM M WHERE K IN ('a', 'b') AND A IN (1, 2);", [(1,), (1,)], 0),
        ("SELECT C FROM M WHERE K = 'a';", [(1,), (1,)], 1),
    ],
)  # fmt: skip
def test_rows(text, rows, scans):
    assert pull(text) == (rows, scans)


def test_the_header():
    query, _ = bound("SELECT K, C, WINDOWSTART, WINDOWEND AS E, ROWTIME FROM W WHERE K = 'a';")
    assert [(c.name, str(c.type), c.role.name) for c in query.columns] == [
        ("K", "STRING", "KEY"),
        ("C", "BIGINT", "VALUE"),
        ("WINDOWSTART", "BIGINT", "KEY"),
        ("E", "BIGINT", "KEY"),
        ("ROWTIME", "BIGINT", "VALUE"),
    ]
    assert (query.kind, query.query_id, query.final_message) == ("pull", "pull_1", None)


def test_limit_and_an_early_end():
    rows, _ = pull("SELECT K FROM N LIMIT 1;")
    assert len(rows) == 1
    query, _ = bound("SELECT K FROM N;")
    query.close()
    assert list(query.batches()) == []


def test_a_row_that_does_not_decode_is_left_out():
    query, _ = bound("SELECT K FROM N;")
    [store] = query.stores.values()
    store.put([(b"z", b"{", 1)])
    store.commit(99)
    assert sorted(row.values for batch in query.batches() for row in batch) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM T WHERE ID = 'x';",
         "The `T` table isn't queryable. To derive a queryable table, you can do "
         "'CREATE TABLE QUERYABLE_T AS SELECT * FROM T'. " + MORE),
        ("SELECT *, ROWPARTITION FROM N;",
         "Pull queries don't support the following columns in SELECT clauses: `ROWPARTITION`"),
        ("SELECT * FROM N WHERE ROWOFFSET > 1;",
         "Pull queries don't support the following columns in WHERE clauses: `ROWOFFSET`"),
        ("SELECT * FROM N LIMIT -1;",
         "Pull queries don't support negative integers in the LIMIT clause. "
         "See https://cnfl.io/queries for more info."),
        ("SELECT * FROM N WHERE K IN ('a', NULL);",
         "Primary key columns can not be NULL: (K = null)"),
        ("SELECT * FROM M WHERE A IN (1, '2');",
         "'2' can not be converted to the type of the key column: A BIGINT KEY"),
        ("SELECT * FROM NN;", "Failed to prepare statement: NN does not exist."),
        ("SELECT K, COUNT(*) FROM N GROUP BY K;",
         "Pull queries don't support GROUP BY clauses. " + MORE),
        ("SELECT * FROM N PARTITION BY C;",
         "Pull queries don't support PARTITION BY clauses. " + MORE),
        ("SELECT * FROM N HAVING C > 1;", "Pull queries don't support HAVING clauses. " + MORE),
        ("SELECT * FROM N WINDOW TUMBLING (SIZE 1 SECOND);",
         "Pull queries don't support WINDOW clauses. " + MORE),
        ("SELECT * FROM S JOIN N ON S.K = N.K;",
         "Pull queries don't support JOIN clauses. " + MORE),
        ("SELECT K, K FROM N;", "Duplicate value columns found in schema: `K` STRING"),
        ("SELECT X FROM N;", None),
        ("SELECT COUNT(*), MAX(C) + 1 FROM N;",
         "Pull queries don't support aggregate functions: COUNT, MAX. " + MORE),
        ("SELECT * FROM W WHERE WINDOWSTART <> 0;",
         "Unsupported WINDOWSTART bounds: [NOT_EQUAL]. " + MORE),
        ("SELECT * FROM W WHERE K = 'a' AND WINDOWEND > 0 AND 5 <= WINDOWEND;",
         "Duplicate WINDOWEND bounds on: GREATER_THAN: [(WINDOWEND > 0), (5 <= WINDOWEND)]. "
         + MORE),
        ("SELECT * FROM W WHERE K = 'b' OR (K = 'a' AND WINDOWEND > 0 AND WINDOWEND = 5);",
         "`(WINDOWEND = 5)` cannot be combined with other WINDOWEND bounds. " + MORE),
    ],
)  # fmt: skip
def test_refused(text, message):
    with pytest.raises(KsqlError) as caught:
        bound(text)
    if message:
        assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("SELECT * FROM N WHERE K = 'a';", "ksql.pull.queries.enable", "Pull queries are disabled"),
        (
            "SELECT * FROM N LIMIT 1;",
            "ksql.query.pull.limit.clause.enabled",
            "LIMIT clause in pull",
        ),
        (
            "SELECT * FROM N WHERE C = 1;",
            "ksql.query.pull.table.scan.enabled",
            "WHERE clause missing key",
        ),
    ],
)
def test_switched_off(text, name, message):
    settings = type(WORLD.settings)({name: "false"})
    with pytest.raises(KsqlError, match=message):
        bind_pull(WORLD.parse(text), WORLD.catalog, BUILTINS, settings, Stores(WORLD), "p")
    key_only = "SELECT * FROM N WHERE K = 'a';"
    if name.endswith("scan.enabled"):
        bind_pull(WORLD.parse(key_only), WORLD.catalog, BUILTINS, settings, Stores(WORLD), "p")


K, L = Column("K", STRING, Role.KEY), Column("L", BIGINT, Role.KEY)
COLUMN_K, COLUMN_L, OTHER = b.Column("K", STRING), b.Column("L", BIGINT), b.Column("O", BIGINT)


def const(value):
    return b.Const(value, BIGINT)


def equals(left, right):
    return b.Compare("=", left, right)


def both(left, right):
    return b.Logical("AND", left, right)


@pytest.mark.parametrize(
    ("predicate", "key", "expected"),
    [
        (None, (K,), None),
        (equals(COLUMN_K, const("a")), (), None),
        (equals(COLUMN_K, const("a")), (K,), [("a",)]),
        (equals(const("a"), COLUMN_K), (K,), [("a",)]),
        (equals(COLUMN_K, const("a")), (K, L), None),
        (both(equals(COLUMN_K, const("a")), equals(COLUMN_L, const(1))), (K, L), [("a", 1)]),
        (both(equals(OTHER, const(1)), equals(COLUMN_K, const("a"))), (K,), [("a",)]),
        (b.In(COLUMN_K, (const("a"), const("b"), const("a"))), (K,), [("a",), ("b",)]),
        (b.In(COLUMN_K, (const("a"), OTHER)), (K,), None),
        (both(b.In(COLUMN_K, (const("a"), const("b"))), b.In(COLUMN_L, (const(1), const(2)))),
         (K, L), [("a", 1), ("a", 2), ("b", 1), ("b", 2)]),
        (b.Logical("OR", equals(COLUMN_K, const("a")), equals(COLUMN_K, const("b"))), (K,),
         [("a",), ("b",)]),
        (b.Not(equals(COLUMN_K, const("a"))), (K,), None),
        (b.Compare("<", COLUMN_K, const("a")), (K,), None),
        (equals(COLUMN_K, OTHER), (K,), None),
        (b.In(COLUMN_K, tuple(const(i) for i in range(1001))), (K,), None),
    ],
)  # fmt: skip
def test_key_lookups(predicate, key, expected):
    assert key_lookups(predicate, key) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM N;", "Missing WHERE clause"),
        ("SELECT * FROM N WHERE C = 1 AND A > 2;",
         "WHERE clause missing key column for disjunct: (C = 1) AND (A > 2)"),
        ("SELECT * FROM N WHERE K = 'a' OR C = 1;",
         "WHERE clause missing key column for disjunct: (C = 1)"),
        ("SELECT * FROM M WHERE K = 'a';",
         "Multi-column sources must specify every key in the WHERE clause. Specified: [K] "
         "Expected: [`K` STRING KEY, `A` BIGINT KEY]"),
        ("SELECT * FROM M WHERE K = 'a' AND A > 1;", "Query requires table scan to be enabled"),
        ("SELECT * FROM W WHERE K > 'a';", "Query requires table scan to be enabled"),
        ("SELECT * FROM N WHERE 'a' < K AND K < 'c';",
         "A comparison condition on the key column cannot be combined with other comparisons "
         "such as an IN predicate"),
        ("SELECT * FROM N WHERE UCASE(K) = 'A';",
         "A comparison must directly reference a key column"),
        ("SELECT * FROM M WHERE K = 'a' AND A = C - 1;",
         "A comparison must be between a key column and a resolvable expression"),
        ("SELECT * FROM N WHERE NOT (K = 'a');",
         "Unsupported expression in WHERE clause: (NOT (K = 'a'))"),
        ("SELECT * FROM N WHERE 'a' LIKE 'a';", "Like condition must be between strings"),
    ],
)  # fmt: skip
def test_without_scans_every_alternative_gives_the_key(text, message):
    with pytest.raises(KsqlError) as caught:
        bound(text, **{"ksql.query.pull.table.scan.enabled": "false"})
    assert caught.value.message.removesuffix(f". {MORE}") == message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM N WHERE K = 'a' OR (K = 'b' AND C > 1);",
        "SELECT * FROM N WHERE K > 'a';",
        "SELECT * FROM W WHERE K = 'a' AND WINDOWSTART > 5;",
        "SELECT * FROM N WHERE K = 'a' AND K LIKE 'a%';",
    ],
)
def test_without_scans_these_are_fine(text):
    bound(text, **{"ksql.query.pull.table.scan.enabled": "false"})


def test_streams_may_be_switched_off():
    settings = WORLD.settings.with_overrides({"ksql.query.pull.stream.enabled": "false"})
    check_stream(WORLD.settings)
    with pytest.raises(KsqlError, match="Pull queries on streams are disabled"):
        check_stream(settings)


def test_a_table_that_is_not_open_yet():
    error = TableNotReady("N", 7)
    assert error.code == 50302
    assert "7 records of its topic are still to be read" in error.text()
    assert "Kafka is away" in TableNotReady("N", 7, "Kafka is away").text()


def test_a_source_table_is_read_where_its_query_keeps_it():
    found = World()
    found.topic("c")
    found.run("CREATE SOURCE TABLE C (K STRING PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='c');")
    found.feed("c", ("a", {"V": 1}, 1), ("a", {"V": 2}, 2), ("b", {"V": 3}, 3), ("b", None, 4))
    query = bind_pull(
        found.parse("SELECT * FROM C WHERE V > 0;"),
        found.catalog,
        BUILTINS,
        found.settings,
        Stores(found),
        "pull_1",
    )
    assert [row.values for batch in query.batches() for row in batch] == [("a", 2)]
