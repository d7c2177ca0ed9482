"""Statements carried out in memory: what the catalog, the topics and the log hold afterwards."""

from __future__ import annotations

import pytest

from ksql.control.engine.changes import (
    DeleteTopic,
    EndQuery,
    PauseQuery,
    PutQuery,
    PutSource,
    RemoveSource,
)
from ksql.control.engine.errors import QueryIdTooLong
from ksql.control.planning.plan_queries import transient_plan
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.error_table import TOO_MANY_WINDOWS
from ksql.core.errors import ParseError
from ksql.kafka.errors import KafkaUnreachable
from tests.unit.world import SETTINGS, World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);"
T = "CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
COPY = "CREATE STREAM C AS SELECT * FROM S;"


# --- CREATE with columns


def test_a_stream_is_declared_with_its_topic():
    world = World()
    outcome = world.execute(S)
    source = world.catalog.source("S")
    assert (outcome.offset, outcome.prepared.command_id) == (0, "stream/`S`/create")
    assert outcome.prepared.message == "Stream created"
    assert (source.kind, source.topic, source.partitions, source.created_by) == (
        "STREAM",
        "s",
        2,
        None,
    )
    assert (source.key_format.name, source.value_format.name) == ("KAFKA", "JSON")
    assert source.statement == S
    assert world.topics.known["s"].partitions == 2
    assert world.topics.known["s"].configs == {"cleanup.policy": "delete"}
    assert [c.changes for c in world.log.commands] == [(PutSource(source),)]


def test_a_topic_that_is_there_is_taken_as_it_is():
    world = World()
    world.topic("s", 4, 3)
    world.execute("CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='s');")
    source = world.catalog.source("S")
    assert (source.partitions, source.replicas, source.key_format.name) == (4, 3, "NONE")
    error = world.refuse("CREATE STREAM S2 (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=5);")
    assert error.message.endswith("KSQL expects 5 partitions (topic has 4).")
    error = world.refuse("CREATE STREAM S2 (A INT) WITH (KAFKA_TOPIC='s', REPLICAS=1);")
    assert error.message.endswith("KSQL expects 1 replicas (topic has 3).")


@pytest.mark.parametrize(
    ("text", "configs"),
    [
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, RETENTION_MS=5);",
         {"cleanup.policy": "delete", "retention.ms": "5"}),
        ("CREATE TABLE X (K INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1);",
         {"cleanup.policy": "compact"}),
        ("CREATE TABLE X (K INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, "
         "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='5 SECONDS', RETENTION_MS=9);",
         {"cleanup.policy": "compact,delete", "retention.ms": "9"}),
    ],
)  # fmt: skip
def test_new_topics_get_their_configuration(text, configs):
    world = World(text)
    assert world.topics.known["x"].configs == configs


DECLARATIONS = [
    ("CREATE STREAM X (A INT) WITH (VALUE_FORMAT='JSON');",
     'Missing required property "KAFKA_TOPIC" which has no default value.'),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x');",
     "Topic 'x' does not exist. If you want to create a new topic for the stream please re-run "
     "the statement providing the required 'PARTITIONS' configuration in the WITH clause "
     "(and optionally 'REPLICAS')."),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=0);",
     "Invalid number of partitions: 0"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=-1);",
     "Invalid number of partitions: -1"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS='many');",
     "Invalid value many for configuration PARTITIONS: Not a number of type INT"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1.5);",
     "Invalid value 1.5 for configuration PARTITIONS: "
     "Expected value to be a 32-bit integer, but it was a java.math.BigDecimal"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=true);",
     "Invalid value true for configuration PARTITIONS: "
     "Expected value to be a 32-bit integer, but it was a java.lang.Boolean"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', PARTITIONS=3000000000);",
     "Invalid value 3000000000 for configuration PARTITIONS: "
     "Expected value to be a 32-bit integer, but it was a java.lang.Long"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', REPLICAS='70000');",
     "Invalid value 70000 for configuration REPLICAS: Not a number of type SHORT"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', REPLICAS=1.5);",
     "Invalid value 1.5 for configuration REPLICAS: "
     "Expected value to be a 16-bit integer (short), but it was a java.math.BigDecimal"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', REPLICAS=65537);",
     "Invalid value 65537 for configuration REPLICAS: "
     "Expected value to be a 16-bit integer (short), but it was a java.lang.Integer"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', RETENTION_MS=1e3);",
     "Invalid value 1000.0 for configuration RETENTION_MS: "
     "Expected value to be a 64-bit integer (long), but it was a java.lang.Double"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC=1);",
     "Invalid value 1 for configuration KAFKA_TOPIC: "
     "Expected value to be a string, but it was a java.lang.Integer"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='');",
     "Invalid value  for configuration KAFKA_TOPIC: String must be non-empty"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', WRAP_SINGLE_VALUE=1);",
     "Invalid value 1 for configuration WRAP_SINGLE_VALUE: "
     "Expected value to be either true or false"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='');", "Unknown format: "),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', VALUE_DELIMITER=',');",
     "JSON does not support the following configs: [delimiter]"),
    ("CREATE STREAM X (K INT KEY) WITH (KAFKA_TOPIC='s', KEY_DELIMITER=',');",
     "KAFKA does not support the following configs: [delimiter]"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', COLOUR='red', WIDTH=1);",
     "Invalid config variable(s) in the WITH clause: COLOUR,WIDTH"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', CLEANUP_POLICY='compact');",
     "Invalid config variable in the WITH clause: CLEANUP_POLICY. The CLEANUP_POLICY config is "
     "automatically inferred based on the type of source (STREAM or TABLE)."),
    ("CREATE STREAM X (A INT KEY, A STRING) WITH (KAFKA_TOPIC='s');",
     "Duplicate column names: `A`"),
    ("CREATE STREAM X (ROWTIME INT) WITH (KAFKA_TOPIC='s');",
     "'ROWTIME' is a reserved column name. You cannot use it as a name for a column."),
    ("CREATE TABLE X (A INT) WITH (KAFKA_TOPIC='s');",
     "Tables require a PRIMARY KEY. Please define the PRIMARY KEY."),
    ("CREATE STREAM X WITH (KAFKA_TOPIC='s');", "The statement does not define any columns."),
    ("CREATE STREAM X WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');",
     "Cannot create topic 's' with format AVRO without configuring 'ksql.schema.registry.url'"),
    ("CREATE TABLE X WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');",
     "Cannot create topic 's' with format AVRO without configuring 'ksql.schema.registry.url'"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', WINDOW_TYPE='SESSION');",
     "Windowed sources require a key column."),
    ("CREATE STREAM X (K INT KEY, A INT) WITH (KAFKA_TOPIC='s', WINDOW_TYPE='TUMBLING');",
     "TUMBLING windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
     "For example: 'WINDOW_SIZE'='10 SECONDS'"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='SESSION', WINDOW_SIZE='1 SECOND');",
     "'WINDOW_SIZE' should not be set for SESSION windows."),
    ("CREATE STREAM X (K INT KEY, A INT) WITH (KAFKA_TOPIC='s', WINDOW_SIZE='1 SECOND');",
     "'WINDOW_SIZE' requires 'WINDOW_TYPE' to be set."),
    ("CREATE STREAM X (K INT KEY, A INT) WITH (KAFKA_TOPIC='s', WINDOW_TYPE='SLIDING');",
     "Invalid value SLIDING for configuration WINDOW_TYPE: "
     "String must be one of: SESSION, HOPPING, TUMBLING, null"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 WEEK');",
     "Configuration WINDOW_SIZE is invalid: Invalid duration: "
     "'1 WEEK'. Unknown time unit: 'WEEK'\nExample valid value: '10 SECONDS'"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='HOPPING', WINDOW_SIZE='1');",
     "Configuration WINDOW_SIZE is invalid: Invalid duration: "
     "'1'. Expected 2 tokens, got: 1\nExample valid value: '10 SECONDS'"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', WRAP_SINGLE_VALUE='x');",
     "Invalid value x for configuration WRAP_SINGLE_VALUE: "
     "Expected value to be either true or false"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', RETENTION_MS='x');",
     "Invalid value x for configuration RETENTION_MS: Not a number of type LONG"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC=7);",
     "Invalid value 7 for configuration KAFKA_TOPIC: "
     "Expected value to be a string, but it was a java.lang.Integer"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='');",
     "Invalid value  for configuration KAFKA_TOPIC: String must be non-empty"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1.5);",
     "Invalid value 1.5 for configuration PARTITIONS: "
     "Expected value to be a 32-bit integer, but it was a java.math.BigDecimal"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=true);",
     "Invalid value true for configuration PARTITIONS: "
     "Expected value to be a 32-bit integer, but it was a java.lang.Boolean"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS='3000000000');",
     "Invalid value 3000000000 for configuration PARTITIONS: Not a number of type INT"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', RETENTION_MS=1e3);",
     "Invalid value 1000.0 for configuration RETENTION_MS: "
     "Expected value to be a 64-bit integer (long), but it was a java.lang.Double"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='HOPPING', WINDOW_SIZE='1  SECOND');",
     "Configuration WINDOW_SIZE is invalid: Invalid duration: "
     "'1  SECOND'. Expected 2 tokens, got: 3\nExample valid value: '10 SECONDS'"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='HOPPING', WINDOW_SIZE='x SECOND');",
     "Configuration WINDOW_SIZE is invalid: Invalid duration: "
     "'x SECOND'. Not numeric: 'x'\nExample valid value: '10 SECONDS'"),
    ("CREATE STREAM X (K INT KEY, A INT) "
     "WITH (KAFKA_TOPIC='s', WINDOW_TYPE='HOPPING', WINDOW_SIZE='0 SECONDS');",
     "Size must be positive"),
    ("CREATE STREAM X (A INT, B INT, A INT KEY, B STRING, C INT) WITH (KAFKA_TOPIC='s');",
     "Duplicate column names: `A`, `B`"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', KAFKA_TOPIC='t');",
     "Duplicate property in the WITH clause: KAFKA_TOPIC"),
    ("CREATE STREAM X (A STRING) WITH (KAFKA_TOPIC='s', TIMESTAMP_FORMAT='iiii');",
     None),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', TIMESTAMP='B');",
     "The TIMESTAMP column set in the WITH clause does not exist in the schema: 'B'"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', TIMESTAMP='A');",
     "Timestamp column, `A`, should be LONG(INT64), TIMESTAMP, "
     "or a String with a timestamp_format specified."),
    ("CREATE STREAM X (A STRING) WITH (KAFKA_TOPIC='s', TIMESTAMP='A');",
     "A String timestamp field has been specified without also specifying the timestamp_format"),
    ("CREATE STREAM X (A BIGINT) WITH (KAFKA_TOPIC='s', TIMESTAMP='A', TIMESTAMP_FORMAT='yyyy');",
     "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
     "is of type STRING."),
    ("CREATE STREAM X (A STRING) WITH (KAFKA_TOPIC='s', TIMESTAMP='A', TIMESTAMP_FORMAT='bb');",
     None),
    ("CREATE TABLE X (K INT PRIMARY KEY, A INT) "
     "WITH (KAFKA_TOPIC='x', PARTITIONS=1, RETENTION_MS=5);",
     "Invalid config variable in the WITH clause: RETENTION_MS. "
     "Non-windowed tables do not support retention."),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON', VALUE_FORMAT='JSON');",
     "Cannot supply both 'VALUE_FORMAT' and 'FORMAT' properties, as 'FORMAT' sets both key and "
     "value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."),
    ("CREATE STREAM X (A INT) "
     "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='ab');",
     "Configuration VALUE_DELIMITER is invalid: "
     "Invalid delimiter value: 'ab'. Delimiter must be a single character or TAB,SPACE\n"
     "Example valid value: ';'"),
    ("CREATE STREAM X (A INT) "
     "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER=' ');",
     "Configuration VALUE_DELIMITER is invalid: "
     "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, "
     "please use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"),
    ("CREATE STREAM X (H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, B BYTES HEADER('b')) "
     "WITH (KAFKA_TOPIC='s');", "Schema already contains a HEADERS column."),
    ("CREATE STREAM X (A BYTES HEADER('b'), B BYTES HEADER('b')) WITH (KAFKA_TOPIC='s');",
     "Schema already contains a HEADER('b') column."),
    ("CREATE STREAM X (A STRING HEADER('b')) WITH (KAFKA_TOPIC='s');",
     "Invalid type for HEADER('b') column: expected BYTES, got STRING"),
    ("CREATE STREAM X (A STRING HEADERS) WITH (KAFKA_TOPIC='s');",
     "Invalid type for HEADERS column: expected ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>, "
     "got STRING"),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC=${topic});", "the variable topic is not defined"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), DECLARATIONS, ids=[d[0] for d in DECLARATIONS])
def test_declarations_that_cannot_be(text, message):
    world = World()
    world.topic("s")
    error = world.refuse(text)
    if message is not None:
        assert error.message.removeprefix("Failed to prepare statement: ") == message


@pytest.mark.parametrize(
    "properties",
    ["KAFKA_TOPIC='s', FOO=1", "KAFKA_TOPIC='s', PARTITIONS='x'", "PARTITIONS=1",
     "KAFKA_TOPIC='s', WINDOW_TYPE='TUMBLING'", "KAFKA_TOPIC='s', CLEANUP_POLICY='compact'",
     "KAFKA_TOPIC='s', FORMAT='JSON', KEY_FORMAT='JSON'"],
)  # fmt: skip
def test_a_bad_with_clause_is_found_while_the_statement_is_prepared(properties):
    error = World().refuse(f"CREATE STREAM X (K INT KEY, A INT) WITH ({properties});")
    assert error.message.startswith("Failed to prepare statement: ")
    assert isinstance(error, ParseError)


@pytest.mark.parametrize(
    "text",
    ["CREATE STREAM X (A INT, A INT) WITH (KAFKA_TOPIC='s');",
     "CREATE STREAM X (ROWTIME INT) WITH (KAFKA_TOPIC='s');",
     "CREATE STREAM X AS SELECT A FROM NOWHERE;",
     "CREATE STREAM X AS SELECT K, Y.A FROM S;"],
)  # fmt: skip
def test_names_that_cannot_be_are_mistakes_of_the_text(text):
    assert isinstance(World(S).refuse(text), ParseError)


@pytest.mark.parametrize("side", ["key", "value"])
def test_a_format_is_needed(side):
    setting = f"ksql.persistence.default.format.{side}"
    text = "CREATE STREAM X (K INT KEY, A INT) WITH (KAFKA_TOPIC='s');"
    assert World().refuse(text, **{setting: ""}).message == (
        f"Statement is missing the '{side.upper()}_FORMAT' property from the WITH clause. "
        f"Either provide one or set a default via the '{setting}' config."
    )


# --- IF NOT EXISTS, OR REPLACE


@pytest.mark.parametrize("text", [S, COPY])
def test_if_not_exists_leaves_what_is_there(text):
    world = World(S, COPY)
    before = world.catalog
    created = text.replace("STREAM", "STREAM IF NOT EXISTS")
    outcome = world.execute(created)
    assert outcome.offset == -1
    assert outcome.prepared.warning.endswith("A stream with the same name already exists")
    assert world.catalog is before
    assert len(world.log.commands) == 2
    error = world.refuse(text)
    assert error.message.startswith("Cannot add stream '")


def test_a_declaration_may_grow_at_its_end():
    world = World(S)
    world.execute(
        "CREATE OR REPLACE STREAM S (K STRING KEY, A BIGINT, B INT) WITH (KAFKA_TOPIC='s');"
    )
    assert [c.name for c in world.catalog.source("S").schema.columns] == ["K", "A", "B"]


def test_a_declaration_that_loses_something_names_all_of_it():
    world = World(S)
    error = world.refuse(
        "CREATE OR REPLACE TABLE S (X STRING PRIMARY KEY, B INT) "
        "WITH (KAFKA_TOPIC='u', PARTITIONS=1);"
    )
    assert error.message == (
        "Cannot upgrade data source: S. "
        "(DataSource 'S' has type = KSTREAM which cannot be upgraded to KTABLE) AND "
        "(DataSource 'S' has topic = s (KAFKA/JSON) "
        "which cannot be upgraded to u (KAFKA/JSON)) AND "
        "(Key columns must be identical. The following key columns are changed, missing or "
        "reordered: [`K` STRING KEY]) AND "
        "(The following columns are changed, missing or reordered: [`A` BIGINT])"
    )
    error = world.refuse(
        "CREATE OR REPLACE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', TIMESTAMP='A');"
    )
    assert "timestampColumn = none which cannot be upgraded to A" in error.message
    assert error.hint == "Create the new source under another name instead."


def test_outcome_of_format_and_timestamp_is_shown():
    world = World(
        "CREATE STREAM S (K INT KEY, A STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1, "
        "FORMAT='DELIMITED', VALUE_DELIMITER='|', TIMESTAMP='A', TIMESTAMP_FORMAT='yyyy');"
    )
    error = world.refuse(
        "CREATE OR REPLACE STREAM S (K INT KEY, A STRING) WITH (KAFKA_TOPIC='s', "
        "FORMAT='DELIMITED', KEY_DELIMITER='TAB', TIMESTAMP='A', TIMESTAMP_FORMAT='MM');"
    )
    assert error.message == (
        "Cannot upgrade data source: S. (DataSource 'S' has topic = "
        "s (DELIMITED/DELIMITED delimiter='|') "
        "which cannot be upgraded to s (DELIMITED delimiter='\t'/DELIMITED)) AND "
        "(DataSource 'S' has timestampColumn = A (yyyy) which cannot be upgraded to A (MM))"
    )


def test_read_only_sources_stay_as_they_are():
    world = World(S.replace("STREAM", "SOURCE STREAM"))
    for text in (
        "CREATE OR REPLACE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s');",
        "CREATE OR REPLACE STREAM S AS SELECT * FROM S;",
    ):
        assert world.refuse(text).message == (
            "Cannot add stream 'S': CREATE OR REPLACE is not supported on source streams."
        )
    assert "read-only" in world.refuse("INSERT INTO S SELECT * FROM S;").message
    assert "ALTER operations are not supported on source streams" in (
        world.refuse("ALTER STREAM S ADD COLUMN B INT;").message
    )
    assert "Cannot delete topic" in world.refuse("DROP STREAM S DELETE TOPIC;").message


# --- ALTER


def test_alter_appends_and_running_queries_keep_their_plan():
    world = World(S, COPY)
    plan = world.query("C").plan
    outcome = world.execute("ALTER STREAM S ADD COLUMN B INT, ADD COLUMN `c` STRING;")
    assert outcome.prepared.message == "Stream S altered."
    assert [c.name for c in world.catalog.source("S").schema.columns] == ["K", "A", "B", "c"]
    assert world.query("C").plan == plan
    world.feed("s", ("k", {"A": 1, "B": 2}, 1))
    assert world.out("C") == [("k", {"A": 1}, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER STREAM X ADD COLUMN B INT;", "Source X does not exist"),
        (
            "ALTER TABLE S ADD COLUMN B INT;",
            "Incompatible data source type is STREAM, but statement was ALTER TABLE",
        ),
        (
            "ALTER STREAM C ADD COLUMN B INT;",
            "ALTER command is not supported for CREATE ... AS statements.",
        ),
        (
            "ALTER STREAM S ADD COLUMN A INT;",
            "Cannot add column `A` to schema. A column with the same name already exists.",
        ),
        (
            "ALTER STREAM S ADD COLUMN B INT, ADD COLUMN B INT;",
            "Cannot add column `B` to schema. A column with the same name already exists.",
        ),
    ],
)
def test_alter_refused(text, message):
    assert World(S, COPY).refuse(text).message == message


# --- DROP


def test_drop_ends_the_query_that_wrote_it_and_may_delete_the_topic():
    world = World(S, COPY)
    world.feed("s", ("k", {"A": 1}, 1))
    outcome = world.execute("DROP STREAM C DELETE TOPIC;")
    assert outcome.prepared.message == "Source `C` (topic: C) was dropped."
    assert [type(c) for c in outcome.prepared.changes] == [EndQuery, RemoveSource, DeleteTopic]
    assert list(world.catalog.sources) == ["S"]
    assert dict(world.catalog.queries) == {}
    assert world.runner.running == {}
    assert set(world.topics.known) == {"s"}
    world.feed("s", ("k", {"A": 2}, 2))
    assert world.out("C") == []


def test_drop_keeps_the_topic():
    world = World(S, COPY)
    world.execute("DROP STREAM C;")
    assert "C" in world.topics.known


def test_source_in_use_is_not_dropped():
    world = World(S, COPY, "INSERT INTO C SELECT * FROM S;")
    error = world.refuse("DROP STREAM S;")
    assert error.message == (
        "Cannot drop S.\n"
        "The following streams and/or tables read from this source: [C].\n"
        "You need to drop them before dropping S."
    )
    assert world.refuse("DROP STREAM C;").message == (
        "Cannot drop C.\n"
        "The following queries read from this source: [].\n"
        "The following queries write into this source: [INSERTQUERY_2].\n"
        "You need to terminate them before dropping C."
    )
    world.execute("TERMINATE INSERTQUERY_2;")
    world.execute("DROP STREAM C;")
    world.execute("DROP STREAM S;")
    assert dict(world.catalog.sources) == {}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("DROP STREAM CC;", "Stream CC does not exist.", ""),  # C is no sure guess
        ("DROP TABLE ZZZ;", "Table ZZZ does not exist.", ""),
        (
            "DROP TABLE S;",
            "Incompatible data source type is STREAM, but statement was DROP TABLE",
            "S is a stream: write DROP STREAM.",
        ),
        (
            "DROP STREAM C DELETE TOPIC;",
            "Refusing to delete topic. Found other data sources (D) using topic C",
            "",
        ),
    ],
)
def test_drop_refused(text, message, hint):
    world = World(S, COPY, "CREATE STREAM D (A BIGINT) WITH (KAFKA_TOPIC='C');")
    error = world.refuse(text)
    assert (error.message, error.hint) == (message, hint)


def test_drop_if_exists():
    outcome = World().execute("DROP STREAM IF EXISTS X;")
    assert (outcome.offset, outcome.prepared.warning) == (-1, "Source `X` does not exist.")


# --- CREATE .. AS SELECT, INSERT INTO


def test_create_as_select_starts_a_query():
    world = World(S)
    outcome = world.execute(
        "CREATE STREAM C WITH (KAFKA_TOPIC='copies', VALUE_FORMAT='DELIMITED') AS "
        "SELECT * FROM S WHERE A > 1;",
        **{"commit.interval.ms": "7"},
    )
    source, query = world.catalog.source("C"), world.query("C")
    assert outcome.prepared.query_id == query.id == "CSAS_C_1"
    assert outcome.prepared.message == "Created query with ID CSAS_C_1"
    assert (source.created_by, source.derived_from, source.partitions) == (query.id, ("S",), 2)
    assert (source.topic, source.value_format.name, source.key_format.name) == (
        "copies",
        "DELIMITED",
        "KAFKA",
    )
    assert (query.kind, query.sources, query.offset, query.started_at_offset) == (
        "CSAS",
        ("S",),
        1,
        1,
    )
    assert query.properties == (("commit.interval.ms", "7"),)
    assert world.log.commands[-1].properties == query.properties
    world.topics.append("s", b"k", b'{"A": 1}', 1)
    world.topics.append("s", b"k", b'{"a": 2}', 2)
    world.drain()
    assert [r.value for r in world.topics.records["copies"]] == [b"2"]


def test_a_table_of_counts():
    world = World(S, "CREATE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;")
    assert world.query("N").id == "CTAS_N_1"
    assert world.topics.known["N"].configs == {"cleanup.policy": "compact"}
    world.feed("s", ("a", {"A": 1}, 1), ("b", {"A": 2}, 2), ("a", {"A": 3}, 1))
    assert world.out("N") == [
        ("a", {"C": 1, "A": 1}, 1),
        ("b", {"C": 1, "A": 2}, 2),
        ("a", {"C": 2, "A": 4}, 1),
    ]


def test_the_topics_prefix_and_where_reading_begins():
    world = World(S, **{"ksql.output.topic.name.prefix": "p_", "auto.offset.reset": "latest"})
    world.feed("s", ("k", {"A": 1}, 1))
    world.execute(COPY)
    world.feed("s", ("k", {"A": 2}, 2))
    assert world.out("p_C") == [("k", {"A": 2}, 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE C AS SELECT * FROM S;",
         "Invalid result type. Your SELECT query produces a STREAM. "
         "Please use CREATE STREAM AS SELECT statement instead."),
        ("CREATE STREAM C AS SELECT K, COUNT(*) FROM S GROUP BY K;",
         "Invalid result type. Your SELECT query produces a TABLE. "
         "Please use CREATE TABLE AS SELECT statement instead."),
        ("CREATE STREAM C WITH (WINDOW_TYPE='SESSION') AS SELECT * FROM S;",
         "Failed to prepare statement: Invalid config variable(s) in the WITH clause: WINDOW_TYPE"),
        ("CREATE STREAM C WITH (KEY_FORMAT='JSON') AS SELECT A FROM NOKEY;",
         "Key format specified for stream without key columns."),
        ("CREATE STREAM C WITH (PARTITIONS=3, KAFKA_TOPIC='s') AS SELECT * FROM S;",
         "A Kafka topic with the name 's' already exists, with different partition/replica "
         "configuration than required. KSQL expects 3 partitions (topic has 2)."),
        ("CREATE STREAM C WITH (VALUE_FORMAT='XML') AS SELECT * FROM S;", None),
        ("CREATE STREAM C WITH (TIMESTAMP='Z') AS SELECT * FROM S;",
         "The TIMESTAMP column set in the WITH clause does not exist in the schema: 'Z'"),
        ("CREATE STREAM C WITH (TIMESTAMP='Z') AS SELECT A FROM S;",
         "The TIMESTAMP column set in the WITH clause does not exist in the schema: 'Z'"),
        ("INSERT INTO X SELECT * FROM S;", "Line: 1, Col: 13: Source `X` does not exist."),
        ("INSERT INTO T SELECT * FROM S;",
         "INSERT INTO can only be used to insert into a stream. T is a table."),
        ("INSERT INTO S SELECT K, COUNT(*) AS A FROM S GROUP BY K;",
         "Incompatible data sink and query result. "
         "Data sink (S) type is KSTREAM but select query result is KTABLE."),
        ("INSERT INTO S SELECT * FROM S LIMIT 1;",
         "Failed to prepare statement: INSERT INTO statements don't support LIMIT clause."),
        ("CREATE STREAM C AS SELECT * FROM S LIMIT 1;",
         "Failed to prepare statement: "
         "CREATE STREAM AS SELECT statements don't support LIMIT clause."),
        ("CREATE TABLE C AS SELECT K, COUNT(*) FROM S GROUP BY K LIMIT 1;",
         "Failed to prepare statement: "
         "CREATE TABLE AS SELECT statements don't support LIMIT clause."),
        ("INSERT INTO NOKEY SELECT * FROM S;",
         "Incompatible schema between results and sink.\n"
         "Result schema is `K` STRING KEY, `A` BIGINT\nSink schema is `A` BIGINT"),
        ("INSERT INTO NOKEY SELECT CAST(A AS STRING) AS A FROM NOKEY;",
         "Incompatible schema between results and sink.\n"
         "Result schema is `A` STRING\nSink schema is `A` BIGINT"),
        ("INSERT INTO NOKEY WITH (QUERY_ID='a b') SELECT * FROM NOKEY;",
         "Query IDs may contain only alphanumeric characters and '_'. Got: 'a b'"),
        ("INSERT INTO NOKEY WITH (QUERY_ID='csas_x') SELECT * FROM NOKEY;",
         "Query IDs must not start with a reserved query ID prefix "
         "(INSERTQUERY_, CTAS_, CSAS_, CST_). Got 'CSAS_X'."),
        ("INSERT INTO NOKEY WITH (PARTITIONS=2) SELECT * FROM NOKEY;",
         "Invalid config variable(s) in the WITH clause: PARTITIONS"),
        ("INSERT INTO HEAD SELECT * FROM NOKEY;",
         "Cannot insert into HEAD because it has header columns"),
    ],
)  # fmt: skip
def test_queries_refused(text, message):
    world = World(
        S,
        T,
        "CREATE STREAM NOKEY (A BIGINT) WITH (KAFKA_TOPIC='nokey', PARTITIONS=1);",
        "CREATE STREAM HEAD (A BIGINT, H BYTES HEADER('h')) WITH (KAFKA_TOPIC='nokey');",
    )
    error = world.refuse(text)
    if message is not None:
        assert error.message == message


def test_insert_into_adds_a_second_writer():
    world = World(
        S,
        "CREATE STREAM D (K STRING KEY, A DECIMAL(21,2)) WITH (KAFKA_TOPIC='d', PARTITIONS=1);",
    )
    world.execute("INSERT INTO D SELECT * FROM S WHERE A < 10;")
    outcome = world.execute("INSERT INTO D WITH (QUERY_ID='mine') SELECT K, 1.5 AS A FROM S;")
    assert outcome.prepared.query_id == "MINE"
    assert [q.id for q in world.catalog.writers("D")] == ["INSERTQUERY_2", "MINE"]
    assert world.catalog.source("D").created_by is None
    world.feed("s", ("k", {"A": 7}, 1))
    assert world.out("d") == [("k", {"A": 7.0}, 1), ("k", {"A": 1.5}, 1)]
    assert world.refuse("INSERT INTO D WITH (QUERY_ID='MINE') SELECT * FROM S;").message == (
        "Query ID 'MINE' already exists."
    )


# --- TERMINATE, PAUSE, RESUME


def test_pause_and_resume_continue_where_the_query_was():
    world = World(S, "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;")
    world.feed("s", ("a", {"A": 1}, 1))
    outcome = world.execute("PAUSE CTAS_N_1;")
    assert (outcome.prepared.message, outcome.prepared.query_id) == ("Query paused.", "CTAS_N_1")
    assert world.query("N").paused
    world.feed("s", ("a", {"A": 1}, 2))
    assert world.last("N") == {"a": {"C": 1}}
    world.execute("PAUSE ctas_n_1;")
    world.execute("RESUME CTAS_N_1;")
    world.execute("RESUME CTAS_N_1;")
    assert not world.query("N").paused
    world.drain()
    assert world.last("N") == {"a": {"C": 2}}
    assert world.log.commands[-1].changes == (PauseQuery("CTAS_N_1", False),)
    written = len(world.out("N"))
    world.execute("RESUME CTAS_N_1;")
    world.drain()
    assert len(world.out("N")) == written


def test_terminate_forgets_the_state_and_keeps_the_source():
    world = World(S, "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;")
    world.feed("s", ("a", {"A": 1}, 1))
    world.execute("TERMINATE CTAS_N_1;")
    assert dict(world.catalog.queries) == {}
    assert "N" in world.catalog.sources
    world.feed("s", ("a", {"A": 1}, 2))
    assert world.last("N") == {"a": {"C": 1}}
    outcome = world.execute(
        "CREATE OR REPLACE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
    )
    assert outcome.prepared.query_id == "CTAS_N_3"
    assert outcome.prepared.verdict is None
    world.drain()
    assert world.last("N") == {"a": {"C": 2}}


def test_all_queries_at_once():
    world = World(S, COPY, "INSERT INTO C SELECT * FROM S;")
    world.execute("PAUSE ALL;")
    assert all(q.paused for q in world.catalog.queries.values())
    world.execute("RESUME ALL;")
    outcome = world.execute("TERMINATE ALL;")
    assert outcome.prepared.query_id is None
    assert outcome.prepared.command_id == "terminate/ALL/execute"
    assert dict(world.catalog.queries) == {}
    world.execute("TERMINATE ALL;")


def test_an_unknown_query():
    error = World(S, COPY).refuse("TERMINATE CSAS_C_11;")
    assert (error.message, error.hint) == (
        "Unknown queryId: CSAS_C_11",
        "Did you mean CSAS_C_1?",
    )


# --- types


def test_types_are_used_and_dropped():
    world = World("CREATE TYPE P AS STRUCT<X INT>;")
    world.run("CREATE STREAM Q (V P) WITH (KAFKA_TOPIC='q', PARTITIONS=1);")
    assert str(world.catalog.source("Q").schema) == "`V` STRUCT<`X` INTEGER>"
    assert world.execute("CREATE TYPE IF NOT EXISTS P AS INT;").prepared.warning
    assert "already" in world.refuse("CREATE TYPE P AS INT;").message
    world.execute("DROP TYPE P;")
    assert dict(world.catalog.types) == {}
    assert world.execute("DROP TYPE IF EXISTS P;").prepared.warning
    assert "P" in world.refuse("DROP TYPE P;").message
    assert str(world.catalog.source("Q").schema) == "`V` STRUCT<`X` INTEGER>"


def test_every_query_has_the_plan_of_its_command():
    world = World(S, COPY)
    [put] = [c for c in world.log.commands[-1].changes if isinstance(c, PutQuery)]
    assert put.query == world.query("C")
    assert world.plan("C").query_id == "CSAS_C_1"
    assert world.plan("C").buckets == 2
    assert dict(world.plan("C").settings)["auto.offset.reset"] == "earliest"


# --- how many may run


def test_no_more_queries_than_configured():
    world = World(S, COPY)
    world.settings = Settings({**SETTINGS, "ksql.query.persistent.active.limit": "1"})
    text = "INSERT INTO C SELECT * FROM S;"
    assert world.refuse(text).message == (
        f"Not executing statement(s) '{text}' as it would cause the number of active, persistent "
        "queries to exceed the configured limit. Use the TERMINATE command to terminate existing "
        "queries, or increase the 'ksql.query.persistent.active.limit' setting via the "
        "'ksql-server.properties' file. Current persistent query count: 1. Configured limit: 1."
    )
    world.execute(COPY.replace("CREATE", "CREATE OR REPLACE"))
    world.execute("CREATE STREAM N (A INT) WITH (KAFKA_TOPIC='n', PARTITIONS=1);")
    world.run("TERMINATE ALL;")
    world.execute(text)


def test_insert_has_the_window_of_its_target():
    windowed = (
        "CREATE STREAM {} (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='{}', PARTITIONS=1, "
        "WINDOW_TYPE='{}'{});"
    )
    size = ", WINDOW_SIZE='{} SECONDS'"
    world = World(
        S,
        windowed.format("W", "w", "TUMBLING", size.format(1)),
        windowed.format("H", "h", "HOPPING", size.format(1)),
        windowed.format("L", "l", "HOPPING", size.format(2)),
        windowed.format("SE", "se", "SESSION", ""),
    )
    world.execute("INSERT INTO W SELECT * FROM H;")
    for target, source, message in (
        ("W", "S", "(W) is windowed by 1000 ms but select query result is not windowed."),
        ("S", "SE", "(S) is not windowed but select query result is SESSION windowed."),
        ("W", "L", "(W) is windowed by 1000 ms but select query result is windowed by 2000 ms."),
    ):
        assert world.refuse(f"INSERT INTO {target} SELECT * FROM {source};").message == (
            f"Incompatible windows of data sink and query result. Data sink {message}"
        )


# --- bounds

OVERLAP = (
    "SELECT K, COUNT(*) AS N FROM S WINDOW HOPPING (SIZE 2 HOURS, ADVANCE BY {}) GROUP BY K"
    " EMIT CHANGES;"
)


@pytest.mark.parametrize(
    "text",
    ["CREATE TABLE W AS ", "EXPLAIN ", "EXPLAIN CREATE TABLE W AS "],
)
def test_a_record_is_in_a_bounded_number_of_windows(text):
    world = World(S)
    with pytest.raises(RequestFailed) as caught:
        world.run(text + OVERLAP.format("1 MILLISECOND"))
    error = caught.value.error
    assert "Each record would be in 7200000 windows, the server allows 10000" in error.message
    assert "ksql.query.windows.per.record.max" in error.hint
    assert not world.catalog.queries


def test_a_push_query_has_the_same_bound_and_ten_thousand_windows_are_fine():
    world = World(S)
    context = world.engine.context(world.settings)
    with pytest.raises(TOO_MANY_WINDOWS.base, match=TOO_MANY_WINDOWS.pattern):
        transient_plan("q", world.parse(OVERLAP.format("719 MILLISECONDS")), context)
    fine = transient_plan("q", world.parse(OVERLAP.format("720 MILLISECONDS")), context)
    assert fine.query_id == "q"


def test_a_query_that_exists_may_have_more_windows_than_new_ones():
    generous = Settings({"ksql.query.windows.per.record.max": "100000"})
    first = World(S)
    first.settings = Settings({**SETTINGS, **generous.server})
    first.run("CREATE TABLE W AS " + OVERLAP.format("100 MILLISECONDS"))
    second = World(log=first.log)
    for offset, command in enumerate(first.log.commands):
        second.engine.replay(offset, command)
    second.engine.start_queries()
    assert second.catalog.queries == first.catalog.queries


LONG = "A" * 200


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE STREAM {LONG} WITH (KAFKA_TOPIC='c') AS SELECT * FROM S;",
        f"CREATE STREAM {LONG * 2} AS SELECT * FROM S;",
        f"CREATE TABLE {LONG} WITH (KAFKA_TOPIC='c') AS SELECT K, COUNT(*) FROM S GROUP BY K;",
        f"CREATE SOURCE TABLE {LONG} (K STRING PRIMARY KEY) WITH (KAFKA_TOPIC='s');",
        f"INSERT INTO C WITH (QUERY_ID='{LONG}A') SELECT * FROM S;",
    ],
)
def test_a_query_id_has_a_bound(text):
    error = World(S, COPY).refuse(text)
    assert type(error) is QueryIdTooLong
    assert error.code == 40001
    assert "200 are allowed" in error.message


def test_an_id_of_the_longest_kind_is_fine():
    world = World(S, COPY)
    world.run(f"INSERT INTO C WITH (QUERY_ID='{LONG}') SELECT * FROM S;")
    assert LONG in world.catalog.queries


@pytest.mark.parametrize("word", ["all", "ALL"])
def test_the_word_for_all_queries_is_no_query_id(word):
    error = World(S, COPY).refuse(f"INSERT INTO C WITH (QUERY_ID='{word}') SELECT * FROM S;")
    assert "Query ID 'ALL' is reserved" in error.message


@pytest.mark.parametrize(
    ("requested", "message", "hint"),
    [
        ("PARTITIONS=1000000", "Invalid number of partitions: 1000000", "from 1 to 100000"),
        ("PARTITIONS=0", "Invalid number of partitions: 0", "from 1 to 100000"),
        ("PARTITIONS=-1", "Invalid number of partitions: -1", "from 1 to 100000"),
        ("PARTITIONS=1, REPLICAS=0", "Invalid number of replicas: 0", "from 1 to 10000"),
        ("PARTITIONS=1, REPLICAS=-1", "Invalid number of replicas: -1", "from 1 to 10000"),
        ("PARTITIONS=1, REPLICAS=10001", "Invalid number of replicas: 10001", "from 1 to 10000"),
    ],
)
@pytest.mark.parametrize("text", ["CREATE STREAM X (A INT) WITH ({});", "AS"])
def test_partitions_and_replicas_have_bounds(text, requested, message, hint):
    if text == "AS":
        text = "CREATE STREAM X WITH ({}) AS SELECT * FROM S;"
    error = World(S).refuse(text.format(f"KAFKA_TOPIC='x', {requested}"))
    assert (error.code, error.message) == (40001, message)
    assert hint in error.hint


@pytest.mark.parametrize(
    "text",
    [
        COPY,
        "CREATE OR REPLACE STREAM D AS SELECT K FROM S;",
        "INSERT INTO S VALUES ('a', 1);",
        "TERMINATE ALL;",
        "DROP STREAM D;",
    ],
)
def test_without_kafka_what_writes_is_refused_at_once(text):
    world = World(S, "CREATE STREAM D AS SELECT * FROM S;")
    before = world.catalog

    def away():
        raise KafkaUnreachable("a:1", "gone")

    world.services.check_kafka = away
    with pytest.raises(RequestFailed) as caught:
        world.run(text)
    assert caught.value.error.code // 100 == 503
    assert world.catalog == before
    assert world.run("SHOW STREAMS;")
