"""DELETE FROM: the tombstone that it writes, and what is refused."""

from __future__ import annotations

import pytest

from ksql.control.statements import execute
from ksql.control.statements.dry_run import DryRun, dry_run
from ksql.control.statements.entities import ConsistencyToken
from ksql.control.statements.execute import RequestFailed
from ksql.core.token import Token
from tests.unit.world import World

SETUP = """
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE P (A INT PRIMARY KEY, B DECIMAL(4,2) PRIMARY KEY, N STRING)
  WITH (KAFKA_TOPIC='p', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE TABLE D (DAY DATE PRIMARY KEY, N INT)
  WITH (KAFKA_TOPIC='d', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE SOURCE TABLE R (ID STRING PRIMARY KEY) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE W (K STRING PRIMARY KEY, A INT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='SESSION');
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE C AS SELECT ID, UCASE(N) AS U FROM T;
"""


def sent(world, topic):
    return [(r.key, r.value, r.timestamp) for r in world.topics.records[topic]]


@pytest.mark.parametrize(
    ("text", "topic", "key"),
    [
        ("DELETE FROM T WHERE ID = 'k';", "t", b"k"),
        ("DELETE FROM T WHERE 'k' = T.ID;", "t", b"k"),
        ("DELETE FROM T WHERE ID = 'a' || UCASE('b');", "t", b"aB"),
        ("DELETE FROM P WHERE B = 1 AND A = 1 + 1;", "p", b'{"A":2,"B":1.00}'),
        ("DELETE FROM D WHERE DAY = '1970-01-03';", "d", b"2"),
    ],
)
def test_a_tombstone_is_written(text, topic, key):
    world = World(SETUP)
    commands = len(world.log.commands)
    assert world.run(text) == []
    assert sent(world, topic) == [(key, None, 1000)]
    assert len(world.log.commands) == commands


def test_queries_see_the_deletion():
    world = World(SETUP)
    world.run("INSERT INTO T VALUES ('k', 'n'); DELETE FROM T WHERE ID = 'k';")
    world.drain()
    assert world.out("C") == [("k", {"U": "N"}, 1000), ("k", None, 1000)]


def test_a_request_with_a_token_gets_the_place_of_the_tombstone():
    world = World(SETUP)
    text = "DELETE FROM T WHERE ID = 'k';"
    [answer] = execute.run(text, world.services, world.settings, {}, {}, Token())
    assert isinstance(answer, ConsistencyToken)
    assert Token.of(answer.consistency_token).places() == {("t", 0): 1}


REFUSED = [
    ("DELETE FROM X WHERE A = 1;", "There is no table X to delete a row of.", ""),
    (
        "DELETE FROM `t` WHERE A = 1;",
        "There is no table `t` to delete a row of.",
        "Did you mean T?",
    ),
    (
        "DELETE FROM S WHERE K = 'k';",
        "Rows of the stream S cannot be deleted: its records are events.",
        "Delete rows of a table instead.",
    ),
    ("DELETE FROM R WHERE ID = 'k';", "Rows of the read-only table R cannot be deleted.", ""),
    ("DELETE FROM W WHERE K = 'k';", "Rows of the windowed table W cannot be deleted.", ""),
    (
        "DELETE FROM C WHERE ID = 'k';",
        "Rows of C cannot be deleted: CTAS_C_6 writes it.",
        "Delete the row from T, if that is a table, or end the query: TERMINATE CTAS_C_6;",
    ),
    (
        "DELETE FROM P WHERE A = 1;",
        "The key column(s) B of P need a value.",
        "DELETE FROM P WHERE A = .. AND B = ..;",
    ),
    (
        "DELETE FROM T WHERE N = 'k';",
        "N is no key column of T.",
        "DELETE FROM T WHERE ID = ..;",
    ),
    ("DELETE FROM T WHERE IDD = 'k';", "T has no column IDD.", "Did you mean ID?"),
    ("DELETE FROM T WHERE X.ID = 'k';", "T has no column ID.", "Did you mean ID?"),
    (
        "DELETE FROM T WHERE ROWTIME = 1;",
        "T has no column ROWTIME.",
        "DELETE FROM T WHERE ID = ..;",
    ),
    (
        "DELETE FROM T WHERE ID = 'a' OR ID = 'b';",
        "The condition of DELETE FROM names one key: only = and AND are possible.",
        "DELETE FROM T WHERE ID = ..;",
    ),
    (
        "DELETE FROM T WHERE ID > 'a';",
        "The condition of DELETE FROM names one key: only = and AND are possible.",
        "DELETE FROM T WHERE ID = ..;",
    ),
    (
        "DELETE FROM T WHERE 1 = 1;",
        "One side of = is a key column.",
        "DELETE FROM T WHERE ID = ..;",
    ),
    ("DELETE FROM T WHERE ID = 'a' AND ID = 'b';", "The key column ID is given twice.", ""),
    (
        "DELETE FROM T WHERE ID = 3;",
        "Failed to delete a row of 'T'. Expected type STRING for field `ID` but got INTEGER(3)",
        "Texts have single quotes: '3'.",
    ),
    ("DELETE FROM T WHERE ID = NULL;", "The key column ID cannot be compared with NULL.", ""),
    (
        "DELETE FROM P WHERE A = CAST(NULL AS INT) AND B = 1;",
        "The key column A cannot be compared with NULL.",
        "",
    ),
]


@pytest.mark.parametrize(("text", "message", "hint"), REFUSED)
def test_refused(text, message, hint):
    world = World(SETUP)
    with pytest.raises(RequestFailed) as caught:
        world.run(text)
    assert (caught.value.error.message, caught.value.error.hint) == (message, hint)
    assert caught.value.error.span is not None
    assert not any(world.topics.records.values())


@pytest.mark.parametrize(("text", "message", "hint"), REFUSED)
def test_a_dry_run_refuses_the_same(text, message, hint):
    world = World(SETUP)
    with pytest.raises(RequestFailed) as caught:
        dry_run(text, world.services, world.settings, {}, {})
    assert caught.value.error.message == message


def test_a_dry_run_writes_nothing():
    world = World(SETUP)
    [answer] = dry_run("DELETE FROM T WHERE ID = 'k';", world.services, world.settings, {}, {})
    assert isinstance(answer, DryRun)
    assert answer.message == ""
    assert not any(world.topics.records.values())


def test_the_setting_that_disables_insert_values_disables_it():
    world = World(SETUP, **{"ksql.insert.into.values.enabled": "false"})
    with pytest.raises(RequestFailed) as caught:
        world.run("DELETE FROM T WHERE ID = 'k';")
    assert "ksql.insert.into.values.enabled" in caught.value.error.hint


def test_the_column_of_another_table_is_no_value():
    world = World(SETUP)
    with pytest.raises(RequestFailed) as caught:
        world.run("DELETE FROM P WHERE A = B;")
    assert "B" in caught.value.error.message
