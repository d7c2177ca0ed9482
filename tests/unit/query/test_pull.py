from __future__ import annotations

import pytest

from ksql.analysis import bound as b
from ksql.base.errors import KsqlError
from ksql.functions.registry import BUILTINS
from ksql.query.pull import TableNotReady, bind_pull, key_lookups
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
        store.commit([(r.key, r.value, r.timestamp) for r in records], len(records))
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
        ("SELECT K FROM N WHERE K = 'a' OR K = 'b';", [("a",), ("b",)], 1),
        ("SELECT K FROM N;", [("a",), ("b",)], 1),
        ("SELECT UCASE(K) AS U, ROWTIME FROM N WHERE K = 'b';", [("B", 2)], 0),
        ("SELECT * FROM W WHERE K = 'a';", [("a", 0, 10, 1), ("a", 10, 20, 1)], 0),
        ("SELECT K, WINDOWSTART, C FROM W WHERE K = 'a' AND WINDOWSTART >= 10;",
         [("a", 10, 1)], 0),
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
    store.commit([(b"z", b"{", 1)], 99)
    assert sorted(row.values for batch in query.batches() for row in batch) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM T WHERE ID = 'x';",
         "The `T` table isn't queryable. To derive a queryable table, you can do "
         "'CREATE TABLE QUERYABLE_T AS SELECT * FROM T'."),
        ("SELECT * FROM NN;", "NN does not exist."),
        ("SELECT K, COUNT(*) FROM N GROUP BY K;",
         "Pull queries don't support GROUP BY clauses."),
        ("SELECT * FROM N PARTITION BY C;", "Pull queries don't support PARTITION BY clauses."),
        ("SELECT * FROM N HAVING C > 1;", "Pull queries don't support HAVING clauses."),
        ("SELECT * FROM N WINDOW TUMBLING (SIZE 1 SECOND);",
         "Pull queries don't support WINDOW clauses."),
        ("SELECT * FROM S JOIN N ON S.K = N.K;", "Pull queries don't support JOIN clauses."),
        ("SELECT K, K FROM N;", "Duplicate value columns found in schema: `K` STRING"),
        ("SELECT X FROM N;", None),
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
        ("SELECT * FROM N LIMIT 1;", "ksql.query.pull.limit.clause.enabled", "LIMIT in pull"),
        ("SELECT * FROM N WHERE C = 1;", "ksql.query.pull.table.scan.enabled", "Pull queries need"),
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
        (b.Logical("OR", equals(COLUMN_K, const("a")), equals(COLUMN_K, const("b"))), (K,), None),
        (b.Not(equals(COLUMN_K, const("a"))), (K,), None),
        (b.Compare("<", COLUMN_K, const("a")), (K,), None),
        (equals(COLUMN_K, OTHER), (K,), None),
        (b.In(COLUMN_K, tuple(const(i) for i in range(1001))), (K,), None),
    ],
)  # fmt: skip
def test_key_lookups(predicate, key, expected):
    assert key_lookups(predicate, key) == expected


def test_a_table_that_is_not_open_yet():
    error = TableNotReady("N")
    assert (error.code, error.hint) == (50302, "Try again in a moment.")


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
