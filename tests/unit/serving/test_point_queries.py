"""Queries for one key after another: what a plan is used again for, and what it is not."""

from __future__ import annotations

from typing import Any

import pytest

from ksql.cluster.replicas.replicated import Caller
from ksql.control.statements.execute import RequestFailed, single
from ksql.core.errors import KsqlError
from ksql.core.token import Token
from ksql.serving import query_service as module
from ksql.serving.point_queries import PointQueryCache, point_query_of
from ksql.serving.query_service import QueryService
from qtt.memory import MemoryTables
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM I (K BIGINT KEY, A BIGINT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;
CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM I GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
"""
KEYS = ["a", "b", "", "it's", "''", "a=''b", "-- x", "/*", "ä; ", "1", "K = 'a'"]


class Asking:
    """Reads over a world; counts the texts that are parsed."""

    def __init__(self, monkeypatch):
        self.world = World(SETUP)
        self.world.feed("s", *((key, {"A": at}, at) for at, key in enumerate(KEYS)))
        self.world.feed("i", *((at, {"A": at}, at) for at in range(12)))
        self.tables = MemoryTables(self.world.engine, self.world.topics)
        self.reads = self.new_reads()
        self.parsed: list[str] = []

        def counted(text, *request):
            self.parsed.append(text)
            return single(text, *request)

        monkeypatch.setattr(module, "single", counted)

    def new_reads(self):
        return QueryService(self.world.engine, None, None, self.tables, lambda: 1000)

    def rows(self, text, variables=None, reads=None, **properties):
        world = self.world
        stream = (reads or self.reads).open(
            text, world.services, world.settings, properties, variables or {}
        )
        names = [column.name for column in stream.columns]
        return names, sorted(row.values for batch in stream.batches() for row in batch)

    def afresh(self, text, **given):
        """The answer of reads that know no plans."""
        return self.rows(text, reads=self.new_reads(), **given)


@pytest.fixture
def asking(monkeypatch):
    return Asking(monkeypatch)


def quoted(key):
    return "'" + key.replace("'", "''") + "'"


HEADS = [
    "SELECT * FROM T WHERE K=",
    "  -- which\n SELECT C, UCASE(K) U FROM T /* = 'x' */ WHERE K =\n ",
    "SELECT K, 'it''s = ', C + 1 AS D FROM T WHERE K=",
    "SELECT * FROM W WHERE K = ",
]


@pytest.mark.parametrize("head", HEADS)
def test_single_plan_answers_for_all_keys(asking, head):
    texts = [head + quoted(key) + " ; " for key in (*KEYS, "nobody")]
    results = [asking.rows(text) for text in texts]
    assert asking.parsed == texts[:1]
    assert results == [asking.afresh(text) for text in texts]
    assert sum(len(rows) for _, rows in results) == len(KEYS)


def test_keys_may_be_numbers(asking):
    texts = [f"SELECT * FROM N WHERE K={key};" for key in (3, 0, 11, 999999999)]
    results = [asking.rows(text)[1] for text in texts]
    assert results == [[(3, 1)], [(0, 1)], [(11, 1)], []]
    assert len(asking.parsed) == 1
    assert asking.rows("SELECT * FROM N WHERE K=2147483648;")[1] == []
    with pytest.raises(RequestFailed):
        asking.rows("SELECT * FROM N WHERE K='3';")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT * FROM T WHERE C=1 AND K='a';", "SELECT * FROM T WHERE C=1 AND K='b';"),
        ("SELECT * FROM T WHERE K='a' OR K='b';", "SELECT * FROM T WHERE K='a' OR K='1';"),
        ("SELECT * FROM T WHERE NOT K='a';", "SELECT * FROM T WHERE NOT K='b';"),
        ("SELECT * FROM T WHERE UCASE(K)='a';", "SELECT * FROM T WHERE UCASE(K)='b';"),
        ("SELECT * FROM T WHERE C=1;", "SELECT * FROM T WHERE C=2;"),
        ("SELECT * FROM T WHERE K<='a';", "SELECT * FROM T WHERE K<='b';"),
        ("SELECT * FROM W WHERE K='a' AND WINDOWSTART=0;", "SELECT * FROM W WHERE K='a' AND "
         "WINDOWSTART=10;"),
        ("SELECT COUNT(*) FROM T WHERE K='a';", "SELECT COUNT(*) FROM T WHERE K='b';"),
        ("SELECT * FROM T JOIN N ON C = N.K WHERE T.K='a';", "SELECT * FROM T JOIN N ON C = N.K "
         "WHERE T.K='b';"),
        ("SELECT * FROM T; -- WHERE K='a';", "SELECT * FROM T; -- WHERE K='b';"),
    ],
)  # fmt: skip
def test_other_conditions_are_planned_each_time(asking, first, second):
    results = []
    for text in (first, second, first):
        try:
            results.append(asking.rows(text, **{"ksql.query.pull.table.scan.enabled": "true"}))
        except RequestFailed as error:
            results.append(error.error.text())
    assert asking.parsed == [first, second, first]
    assert results[0] == results[2]


def test_a_planned_look_up_of_columns_waits_for_nothing(asking):
    def at_once(text, **caller):
        return asking.reads.at_once(text, asking.world.settings, {}, Caller(**caller))

    text = "SELECT C, K FROM T WHERE K='a';"
    assert at_once(text) is None
    planned = asking.rows(text)[1]
    assert [row.values for batch in at_once(text).batches() for row in batch] == planned
    assert at_once(text.replace("'a'", "'nobody'")) is not None
    assert at_once(text, info=True) is None
    assert at_once(text, token=Token()) is None
    asking.tables.at_hand = lambda _source, _settings: False
    assert at_once(text) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM W WHERE K='a';",
        "SELECT UCASE(K) AS U FROM T WHERE K='a';",
        "SELECT C + 1 AS D FROM T WHERE K='a';",
        "SELECT * FROM T WHERE K='a' OR K='b';",
        "SELECT * FROM T WHERE K='a' EMIT CHANGES;",
        "PRINT T;",
    ],
)
def test_nothing_else_is_begun_without_a_thread(asking, text):
    if text.startswith("SELECT") and "EMIT" not in text:
        asking.rows(text)
    assert asking.reads.at_once(text, asking.world.settings, {}, Caller()) is None


def test_variables_are_never_part_of_a_plan(asking):
    text = "SELECT * FROM T WHERE K='${key}';"
    assert asking.rows(text, {"key": "a"})[1] == [("a", 1, 0)]
    assert asking.rows(text, {"key": "b"})[1] == [("b", 1, 1)]
    assert len(asking.parsed) == 2


def test_properties_have_plans_of_their_own(asking):
    text, level = "SELECT * FROM T WHERE K='a';", "ksql.query.pull.isolation.level"
    seen = []

    def opened(settings, *_):
        seen.append(settings.text(level))
        return asking.tables

    asking.tables.opened = opened
    for value in ("read_committed", "read_uncommitted", "read_committed"):
        asking.rows(text, **{level: value})
    assert seen == ["read_committed", "read_uncommitted", "read_committed"]
    assert len(asking.parsed) == 2
    with pytest.raises(RequestFailed):
        asking.rows(text, **{"no.such.property": "1"})


def test_a_changed_catalog_ends_a_plan(asking):
    text = "SELECT * FROM T WHERE K='a';"
    assert asking.rows(text)[0] == ["K", "C", "A"]
    asking.world.run("CREATE OR REPLACE TABLE T AS SELECT K, COUNT(*) AS C, SUM(A) AS A, "
                     "MAX(A) AS M FROM S GROUP BY K;")  # fmt: skip
    assert asking.rows(text)[0] == ["K", "C", "A", "M"]
    asking.world.run("DROP TABLE T;")
    with pytest.raises(RequestFailed, match="T"):
        asking.rows(text)


def test_a_plan_fails_with_the_text_of_its_statement(asking):
    def refuse(_source):
        raise KsqlError("not now")

    asking.rows("-- first\nSELECT * FROM T WHERE K='a';")
    asking.tables.stores = refuse
    with pytest.raises(RequestFailed, match="not now") as caught:
        asking.rows("-- first\nSELECT * FROM T WHERE K='b';  ")
    assert caught.value.statement_text == "SELECT * FROM T WHERE K='b';"


def test_the_plan_that_was_used_last_stays():
    plans: Any = PointQueryCache(most=2)
    a, b, c = (point_query_of(f"SELECT {name} FROM T WHERE K='x';") for name in "ABC")
    plans.keep(a, {}, (), "a")
    plans.keep(b, {}, (), "b")
    assert plans.find(a, {}, ()) == "a"
    plans.keep(c, {}, (), "c")
    assert [plans.find(each, {}, ()) for each in (a, b, c)] == ["a", None, "c"]
