from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.core.types.model import BIGINT, STRING
from ksql.core.types.schema import Column, Role
from ksql.functions.registry import BUILTINS
from ksql.serving.clauses import check_stream
from ksql.sql.binder import bound as b
from ksql.views.access_path import key_lookups
from ksql.views.materialized_view import MORE, TableNotReady
from ksql.views.stores.base import StoreClosed
from tests.unit.serving.pulls import WORLD, Stores, answer, bind_pull, bound
from tests.unit.world import World


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
        ("SELECT K FROM W WHERE WINDOWSTART = 0.0;", [("a",), ("b",)], 1),
        ("SELECT K FROM W WHERE K = 'a' AND WINDOWSTART = '1970-01-01T00:00:00.010';",
         [("a",)], 0),
        ("SELECT K FROM W WHERE K = 'a' AND WINDOWSTART = 5 + 5;", [("a",)], 0),
        ("SELECT K FROM W WHERE K = 'a' AND WINDOWSTART = CAST(C * 1.0 AS DOUBLE);", [], 0),
        ("SELECT * FROM W;", [("a", 0, 10, 1), ("a", 10, 20, 1), ("b", 0, 10, 1)], 1),
        ("SELECT C FROM M WHERE K = 'a' AND A = 3;", [(1,)], 0),
        ("SELECT C FROM M WHERE K IN ('a', 'b') AND A IN (1, 2);", [(1,), (1,)], 0),
        ("SELECT C FROM M WHERE K = 'a';", [(1,), (1,)], 1),
        ("SELECT C FROM M WHERE A IN (1, 3) AND C < 1.5;", [(1,), (1,)], 1),
        ("SELECT K FROM N WHERE K > 'a';", [("b",)], 0),
        ("SELECT K FROM N WHERE 'a' >= K OR (K >= 'b' AND K < 'c' AND C = 7);", [("a",)], 0),
        ("SELECT K FROM N WHERE K BETWEEN 'aa' AND 'c';", [("b",)], 0),
        ("SELECT K FROM N WHERE K > 'b' AND K < 'a';", [], 0),
        ("SELECT K FROM N WHERE K <> 'a';", [("b",)], 1),
        ("SELECT K, WINDOWEND FROM W WHERE K = 'a' AND WINDOWEND > 10;", [("a", 20)], 0),
        ("SELECT K, WINDOWSTART AS S FROM W WHERE (K = 'a' AND WINDOWSTART = 10) "
         "OR (K = 'b' AND WINDOWSTART < 5);", [("a", 10), ("b", 0)], 0),
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
    query, tables = bound("SELECT K FROM N;")
    tables.store.put([(b"z", b"{", 1)])
    tables.store.commit(99)
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
        ("SELECT * FROM M WHERE K = 'a' AND A IN (1, '2');",
         "'2' can not be converted to the type of the key column: A BIGINT KEY"),
        ("SELECT * FROM M WHERE K = 'a' AND A = 1.5;",
         "'1.5' can not be converted to the type of the key column: A BIGINT KEY"),
        ("SELECT * FROM NN;", "Failed to prepare statement: NN does not exist."),
        ("SELECT K, C FROM N GROUP BY K, C;",
         "Pull queries don't support GROUP BY clauses. " + MORE),
        ("SELECT COUNT(*) FROM N GROUP BY ();", "GROUP BY requires at least one expression"),
        ("SELECT * FROM N PARTITION BY C;",
         "Pull queries don't support PARTITION BY clauses. " + MORE),
        ("SELECT * FROM N HAVING C > 1;", "Pull queries don't support HAVING clauses. " + MORE),
        ("SELECT * FROM N WINDOW TUMBLING (SIZE 1 SECOND);",
         "Pull queries don't support WINDOW clauses. " + MORE),
        ("SELECT * FROM S JOIN N ON S.K = N.K;",
         "Pull queries don't support JOIN clauses. " + MORE),
        ("SELECT K, K FROM N;", "Duplicate value columns found in schema: `K` STRING"),
        ("SELECT X FROM N;", None),
        ("SELECT COUNT(*) FROM N HAVING COUNT(*) > 1;",
         "Pull queries don't support HAVING clauses. " + MORE),
        ("SELECT * FROM W WHERE WINDOWSTART <> 0;",
         "Unsupported WINDOWSTART bounds: [NOT_EQUAL]. " + MORE),
        ("SELECT * FROM W WHERE K = 'a' AND WINDOWEND > 0 AND 5 <= WINDOWEND;",
         "Duplicate WINDOWEND bounds on: GREATER_THAN: [(WINDOWEND > 0), (5 <= WINDOWEND)]. "
         + MORE),
        ("SELECT * FROM W WHERE K = 'b' OR (K = 'a' AND WINDOWEND > 0 AND WINDOWEND = 5);",
         "`(WINDOWEND = 5)` cannot be combined with other WINDOWEND bounds. " + MORE),
        *((f"SELECT * FROM W WHERE K = 'a' AND {bound_};",
           "Window bounds must be an INT, BIGINT or STRING containing a datetime. " + MORE)
          for bound_ in ("WINDOWSTART = 10.0", "WINDOWEND >= 2e1", "0.5 < WINDOWSTART",
                         "WINDOWSTART IN (0.0, 10)", "WINDOWSTART BETWEEN 0 AND 10.0",
                         "WINDOWSTART = CAST(10 AS DOUBLE)")),
        ("SELECT * FROM W WHERE K = 'b' OR (K = 'a' AND WINDOWEND < 20.0);",
         "Window bounds must be an INT, BIGINT or STRING containing a datetime. " + MORE),
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
         "WHERE clause missing key column for disjunct: ((C = 1) AND (A > 2))"),
        ("SELECT * FROM N WHERE K = 'a' OR C = 1;",
         "WHERE clause missing key column for disjunct: (C = 1)"),
        ("SELECT * FROM M WHERE K = 'a';",
         "Multi-column sources must specify every key in the WHERE clause. Specified: [`K`] "
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
        ("SELECT * FROM N WHERE K <> 'a';",
         "Bound on key columns '[`K` STRING KEY]' must currently be '='"),
        ("SELECT * FROM M WHERE K IS DISTINCT FROM 'a' AND A = 1;",
         "Bound on key columns '[`K` STRING KEY, `A` BIGINT KEY]' must currently be '='"),
        ("SELECT * FROM N WHERE K < 'a' OR K > 'b';", "Query requires table scan to be enabled"),
        ("SELECT * FROM N WHERE K = 'a' OR K > 'b';", "Query requires table scan to be enabled"),
        ("SELECT * FROM N WHERE K > 'a' AND C IN (1, 2);",
         "Query requires table scan to be enabled"),
        ("SELECT * FROM N WHERE K BETWEEN 'a' AND 'b';",
         "Unsupported expression in WHERE clause: (K BETWEEN 'a' AND 'b')"),
        ("SELECT * FROM N WHERE K IS NOT NULL;",
         "Unsupported expression in WHERE clause: (K IS NOT NULL)"),
        ("SELECT * FROM N WHERE K LIKE 'a%';",
         "WHERE clause missing key column for disjunct: (K LIKE 'a%')"),
        ("SELECT * FROM N WHERE C IN (1, 2);",
         "WHERE clause missing key column for disjunct: (C = 1)"),
        ("SELECT * FROM N WHERE K IN ('a', 'b') AND K = 'a';",
         "A comparison condition on the key column cannot be combined with other comparisons "
         "such as an IN predicate"),
        ("SELECT * FROM M WHERE A = 1 AND (K = 'a' OR C = 2);",
         "Multi-column sources must specify every key in the WHERE clause. Specified: [`A`] "
         "Expected: [`K` STRING KEY, `A` BIGINT KEY]"),
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
        "SELECT * FROM N WHERE K IN ('a', 'b') AND (C > 1 OR A = 2);",
        "SELECT * FROM M WHERE (K = 'a' OR K = 'b') AND A IN (1, 2);",
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


@pytest.mark.parametrize("format_", ["JSON", "DELIMITED"])
def test_a_source_table_keeps_its_headers(format_):
    world_ = World()
    world_.topic("h")
    world_.run(
        "CREATE SOURCE TABLE H (K STRING PRIMARY KEY, V INT, A BYTES HEADER('a'), "
        f"B BYTES HEADER('b')) WITH (KAFKA_TOPIC='h', VALUE_FORMAT='{format_}');"
    )
    value = b"1" if format_ == "DELIMITED" else b'{"V":1}'
    world_.write("h", b"x", value, 1, [("a", b"one"), ("a", b"two")])
    world_.write("h", b"y", value, 2)
    world_.drain()
    assert answer("SELECT * FROM H;", world_) == [("x", 1, b"two", None), ("y", 1, None, None)]
    assert answer("SELECT V FROM H WHERE A = TO_BYTES('two', 'utf8');", world_) == [(1,)]


def test_all_headers_of_a_source_table():
    world_ = World()
    world_.topic("h")
    world_.run(
        "CREATE SOURCE TABLE H (K STRING PRIMARY KEY, V INT, "
        "ALL_ ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS) WITH (KAFKA_TOPIC='h');"
    )
    world_.write("h", b"x", b'{"V":1}', 1, [("a", b"one"), ("b", None)])
    world_.drain()
    headers = [{"KEY": "a", "VALUE": b"one"}, {"KEY": "b", "VALUE": None}]
    assert answer("SELECT ALL_ FROM H WHERE K = 'x';", world_) == [(headers,)]


def test_a_source_table_is_read_where_its_query_keeps_it():
    world_ = World()
    world_.topic("c")
    world_.run("CREATE SOURCE TABLE C (K STRING PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='c');")
    world_.feed("c", ("a", {"V": 1}, 1), ("a", {"V": 2}, 2), ("b", {"V": 3}, 3), ("b", None, 4))
    query = bind_pull(
        world_.parse("SELECT * FROM C WHERE V > 0;"),
        world_.catalog,
        BUILTINS,
        world_.settings,
        Stores(world_),
        "pull_1",
    )
    assert [row.values for batch in query.batches() for row in batch] == [("a", 2)]


class Moving(Stores):
    """Stores that are closed under their readers, so many times."""

    def __init__(self, world, times):
        super().__init__(world)
        self.times = times

    def stores(self, source):
        stores_ = super().stores(source)
        if self.times:
            self.times -= 1
            self.store.close()
        return stores_


@pytest.mark.parametrize(
    "text",
    ["SELECT K FROM N;", "SELECT K FROM N WHERE K IN ('a', 'b');"],
)
def test_a_store_that_is_exchanged_under_its_reader_is_opened_again(text):
    """STORE_TYPE has changed: the rows are in another store at once."""

    def read(times):
        tables = Moving(WORLD, times)
        query = bind_pull(WORLD.parse(text), WORLD.catalog, BUILTINS, WORLD.settings, tables, "q")
        return sorted(row.values for batch in query.batches() for row in batch)

    assert read(1) == [("a",), ("b",)]
    with pytest.raises(TableNotReady) as caught:
        read(2)
    error = caught.value
    assert (error.code, error.is_ready(), error.patience_s > 0) == (50302, True, True)
    assert error.message == StoreClosed("in memory").message
    assert "memory" not in error.text()
