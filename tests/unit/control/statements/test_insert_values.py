from __future__ import annotations

import pytest

from ksql.control.statements import execute
from ksql.control.statements.entities import ConsistencyToken
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import ServerError
from ksql.core.token import Token
from ksql.formats import MemoryRegistry
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT, D DECIMAL(4,2), ST STRUCT<X INT>)
  WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE STREAM H (A INT, HD BYTES HEADER('h')) WITH (KAFKA_TOPIC='h', PARTITIONS=1);
CREATE STREAM W (K STRING KEY, A INT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='SESSION');
CREATE SOURCE STREAM R (A INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE STREAM `low` (A INT) WITH (KAFKA_TOPIC='low', PARTITIONS=1);
CREATE STREAM N (A STRING) WITH (KAFKA_TOPIC='n', PARTITIONS=1, VALUE_FORMAT='KAFKA');
"""


@pytest.mark.parametrize(
    ("text", "topic", "expected"),
    [
        ("INSERT INTO S VALUES ('k', 1, 2.5, STRUCT(X := 3));", "s",
         ("k", {"A": 1, "D": 2.50, "ST": {"X": 3}}, 1000)),
        ("INSERT INTO S VALUES ('k', 1, 2.5, STRUCT(X := 3, Y := 4));", "s",
         ("k", {"A": 1, "D": 2.50, "ST": {"X": 3}}, 1000)),
        ("INSERT INTO S (A, K) VALUES (1 + 2, 'a' + 'b');", "s",
         ("ab", {"A": 3, "D": None, "ST": None}, 1000)),
        ("INSERT INTO S (ROWTIME, A) VALUES (7, 1);", "s",
         (None, {"A": 1, "D": None, "ST": None}, 7)),
        ("INSERT INTO S (K, D) VALUES ('k', 1);", "s",
         ("k", {"A": None, "D": 1.00, "ST": None}, 1000)),
        ("INSERT INTO T (ID, N) VALUES ('k', NULL);", "t", ("k", {"N": None}, 1000)),
        ("INSERT INTO T (ID) VALUES ('k');", "t", ("k", {"N": None}, 1000)),
        ("INSERT INTO H (A) VALUES (1);", "h", (None, {"A": 1}, 1000)),
        ("INSERT INTO H VALUES (1);", "h", (None, {"A": 1}, 1000)),
    ],
)  # fmt: skip
def test_written(text, topic, expected):
    world = World(SETUP)
    assert world.run(text) == []
    assert world.out(topic) == [expected]
    assert len(world.log.commands) == len(world.catalog.sources)


def test_queries_see_the_record():
    world = World(SETUP, "CREATE STREAM C AS SELECT K, A * 2 AS B FROM S;")
    world.run("INSERT INTO S (K, A) VALUES ('k', 4);")
    world.drain()
    assert world.out("C") == [("k", {"B": 8}, 1000)]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("INSERT INTO X VALUES (1);",
         "Cannot insert values into an unknown stream/table: `X`", None),
        ("INSERT INTO `s` VALUES (1);",
         "Cannot insert values into an unknown stream/table: `s`",
         "Did you mean S? Hint: try removing double quotes from the source name."),
        ("INSERT INTO LOW VALUES (1);",
         "Cannot insert values into an unknown stream/table: `LOW`",
         'Did you mean "low"? Hint: wrap the source name in double quotes to make it '
         "case-sensitive."),
        ("INSERT INTO R VALUES (1);", "Cannot insert values into read-only stream: R", ""),
        ("INSERT INTO W VALUES ('k', 1);",
         "Cannot insert values into windowed stream/table!", ""),
        ("INSERT INTO H VALUES (1, 'x');", "Cannot insert into HEADER columns: HD", ""),
        ("INSERT INTO H (HD) VALUES ('x');", "Cannot insert into HEADER columns: HD", ""),
        ("INSERT INTO S VALUES ('k', 1);",
         "Failed to insert values into 'S'. Expected a value for each column. "
         "Expected Columns: [`K`, `A`, `D`, `ST`]. Got ['k', 1]",
         "Name the columns that get a value: S (K, A) VALUES .."),
        ("INSERT INTO S (K, A) VALUES ('k', 1, 2);",
         "Failed to prepare statement: Expected number columns and values to match: "
         "[K, A], ['k', 1, 2]", ""),
        ("INSERT INTO S VALUES ();",
         "Failed to prepare statement: Expected some values for INSERT INTO statement.", ""),
        ("INSERT INTO S (ROWTIME, K) VALUES (-1, 'k');",
         "Failed to insert values into 'S'. Invalid timestamp: -1. "
         "Timestamp should always be non-negative or null.", ""),
        ("INSERT INTO S (ROWTIME, K) VALUES (9223372036854776, 'k');",
         "Failed to insert values into 'S'. Invalid timestamp: 9223372036854776. "
         "No query could read a record later than 9223372036854775.",
         "Timestamps are in milliseconds since 1970."),
        ("INSERT INTO S (K, A, a) VALUES ('k', 1, 2);", "Column name `A` is given twice.", ""),
        ("INSERT INTO S (KK) VALUES ('k');", "Column name `KK` does not exist.",
         "Did you mean K?"),
        ("INSERT INTO S (ROWPARTITION) VALUES (1);",
         "Inserting into column `ROWPARTITION` is not allowed.", ""),
        ("INSERT INTO T (N) VALUES ('x');",
         "Failed to insert values into 'T'. Value for primary key column(s) ID is required for "
         "tables", ""),
        ("INSERT INTO T VALUES (NULL, 'x');",
         "Failed to insert values into 'T'. Value for primary key column(s) ID is required for "
         "tables", ""),
        ("INSERT INTO S (A) VALUES ('x');",
         "Failed to insert values into 'S'. "
         "Expected type BIGINT for field `A` but got STRING(x)", ""),
        ("INSERT INTO S (A) VALUES (1.5);",
         "Failed to insert values into 'S'. "
         "Expected type BIGINT for field `A` but got DECIMAL(1.5)", ""),
        ("INSERT INTO S (A) VALUES (ARRAY[1]);",
         "Failed to insert values into 'S'. "
         "Expected type BIGINT for field `A` but got ARRAY([1])", ""),
        ("INSERT INTO S (D) VALUES (123.45);", None, None),
        ("INSERT INTO S (A) VALUES (K);", None, None),
        ("INSERT INTO S (A) VALUES (X.K);",
         "Failed to prepare statement: 'X' is not a valid stream/table name or alias.", ""),
    ],
)  # fmt: skip
def test_refused(text, message, hint):
    world = World(SETUP)
    with pytest.raises(RequestFailed) as caught:
        world.run(text)
    if message is not None:
        assert caught.value.error.message == message
    if hint is not None:
        assert caught.value.error.hint == hint
    assert all(world.out(topic) == [] for topic in world.topics.known)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("INSERT INTO X VALUES (1);", "X"),
        ("INSERT INTO R VALUES (1);", "R VALUES"),
        ("INSERT INTO S VALUES ();", "S VALUES"),
        ("INSERT INTO S VALUES ('k', 'one');", "'one'"),
        ("INSERT INTO S (K, A) VALUES ('k', 'x' + 'y');", "'x' +"),
        ("INSERT INTO S (K, A) VALUES ('k', NOSUCH(1));", "NOSUCH"),
        ("INSERT INTO S (K, A) VALUES ('k', 1, 2);", "2);"),
        ("INSERT INTO S (K, A, D) VALUES ('k', 1);", "D)"),
        ("INSERT INTO S VALUES ('k', 1, 2, NULL, 5);", "5"),
        ("INSERT INTO S VALUES ('k', 1);", "1"),
        ("INSERT INTO S (K, `a`) VALUES ('k', 1);", "`a`"),
        ("INSERT INTO S (K, A, K) VALUES ('k', 1, 'k');", "K) VALUES"),
        ("INSERT INTO H (A, HD) VALUES (1, NULL);", "HD"),
        ("INSERT INTO S (K, ROWTIME) VALUES ('k', -7);", "-7"),
        ("INSERT INTO T VALUES (NULL, 'x');", "T VALUES"),
    ],
)
def test_a_refusal_names_the_place(text, place):
    with pytest.raises(RequestFailed) as caught:
        World(SETUP).run(text)
    span = caught.value.error.span
    assert span.start == text.index(place) == span.column - 1


def test_it_can_be_switched_off():
    with pytest.raises(RequestFailed, match="disabled INSERT INTO"):
        World(SETUP).run(
            "INSERT INTO H (A) VALUES (1);", **{"ksql.insert.into.values.enabled": "false"}
        )


def answer_of(text, token):
    """The entities of a request about tokens."""
    world = World(SETUP)
    world.write("s", None, b"{}", 0)
    return execute.run(text, world.services, world.settings, {}, {}, token)


def test_request_for_tokens_gets_one_that_names_its_records():
    before = Token().with_({("s", 0): 1, ("other", 2): 9})
    two = "INSERT INTO S (A) VALUES (1); INSERT INTO T (ID) VALUES ('k');"
    [entity] = answer_of(two, before)
    assert isinstance(entity, ConsistencyToken)
    assert Token.of(entity.consistency_token) == before.with_({("s", 0): 2, ("t", 0): 1})
    assert answer_of("SET 'auto.offset.reset' = 'latest';", before) == []


def test_rows_written_before_a_failure_are_named(monkeypatch):
    world, written = World(SETUP), list[object]()
    world.write("s", None, b"{}", 0)
    begin = world.begin

    def begin_once(*record):
        if written:
            raise ServerError("Kafka cannot be reached")
        written.append(record)
        return begin(*record)

    monkeypatch.setattr(world, "begin", begin_once)
    two = "INSERT INTO S (A) VALUES (1); INSERT INTO S (A) VALUES (2);"
    with pytest.raises(RequestFailed) as caught:
        execute.run(two, world.services, world.settings, {}, {}, Token())
    [entity] = caught.value.entities
    assert isinstance(entity, ConsistencyToken)
    assert Token.of(entity.consistency_token).places() == {("s", 0): 2}


@pytest.mark.parametrize(
    ("columns", "properties", "value"),
    [
        ("A INT, B STRING", "VALUE_FORMAT='JSON'", b'{"A":null,"B":null}'),
        ("A INT, B STRING", "VALUE_FORMAT='DELIMITED'", b","),
        ("A INT", "VALUE_FORMAT='DELIMITED'", b""),
        ("A INT", "VALUE_FORMAT='KAFKA'", None),
        ("A INT", "VALUE_FORMAT='JSON', WRAP_SINGLE_VALUE=false", None),
        ("A INT", "VALUE_FORMAT='JSON'", b'{"A":null}'),
    ],
)
def test_a_row_of_nulls_is_what_its_format_makes_of_it(columns, properties, value):
    with_ = f"WITH (KAFKA_TOPIC='nulls', PARTITIONS=1, {properties})"
    world = World(f"CREATE TABLE NULLS (K STRING PRIMARY KEY, {columns}) {with_};")
    world.run("INSERT INTO NULLS (K) VALUES ('k');")
    assert [record.value for record in world.topics.records["nulls"]] == [value]


@pytest.mark.parametrize("format_", ["AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR"])
def test_a_row_of_nulls_in_a_format_with_schemas_has_a_value(format_):
    with_ = f"WITH (KAFKA_TOPIC='nulls', PARTITIONS=1, VALUE_FORMAT='{format_}')"
    text = f"CREATE TABLE NULLS (K STRING PRIMARY KEY, A INT, B STRING) {with_};"
    world = World(text, registry=MemoryRegistry())
    world.run("INSERT INTO NULLS (K) VALUES ('k');")
    [record] = world.topics.records["nulls"]
    assert record.value is not None
