"""Topics that no statement harms: those of Kafka, of a service, those that settings name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.control.engine.changes import PutSource
from ksql.control.engine.ports import Command
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.inserts_stream import RowWriter
from ksql.control.statements.services import Request
from ksql.core.config import Settings
from ksql.core.error_table import INTERNAL_TOPIC
from ksql.core.errors import KsqlError
from ksql.exec.dataflow import topic_acl
from ksql.exec.dataflow.query_start import plan_of
from ksql.serving.query_service import QueryService
from tests.unit.world import World

CLOSED = (
    "_confluent-ksql-default__command_topic",
    "_confluent-ksql-another_command_topic",
    "_confluent-ksql-default_query_CST_T_1-t-changelog",
    "_confluent-ksql-default__configs",
    "_schemas",
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
)
READ_ONLY = ("_confluent-metrics", "connect-configs", "default_ksql_processing_log")
S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
FAILURES = (KsqlError, RequestFailed)


def world():
    """A stream, and every topic that is not to be harmed."""
    world_ = World(S)
    for topic in (*CLOSED, *READ_ONLY):
        world_.topic(topic)
    return world_


def over(world_, topic):
    """A stream X over the topic, as an older version took it."""
    source = world_.catalog.source("S")
    replay(world_, PutSource(replace(source, name="X", topic=topic)))
    return world_


def replay(world_, change):
    """Let the engine take a change from the log, as an older version wrote it there."""
    world_.engine.replay(len(world_.log.commands), Command("stream/X/create", "older;", (change,)))


def harmless(world_, text, says, **settings):
    """The statement is refused, and every topic is as it was."""
    before = {name: list(world_.topics.records.get(name, ())) for name in world_.topics.known}
    with pytest.raises(FAILURES) as caught:
        world_.run(text, **settings)
    error = getattr(caught.value, "error", caught.value)
    after = {name: list(world_.topics.records.get(name, ())) for name in world_.topics.known}
    assert says in error.text()
    assert error.code // 100 == 400
    assert error.hint
    assert after == before


@pytest.mark.parametrize("topic", CLOSED)
@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='{}');",
        "create or replace stream x (a int) with (kafka_topic='{}');",
        'CREATE STREAM "x-y" (A INT) WITH ("KAFKA_TOPIC"=\'{}\');',
        "CREATE SOURCE STREAM X (A INT) WITH (KAFKA_TOPIC='{}');",
        "CREATE TABLE X (K INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='{}');",
        "CREATE SOURCE TABLE X (K INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='{}');",
        "CREATE STREAM X WITH (KAFKA_TOPIC='{}') AS SELECT * FROM S;",
        "CREATE STREAM `{}` AS SELECT * FROM S;",
        "CREATE TABLE X WITH (KAFKA_TOPIC='{}') AS SELECT K, COUNT(*) FROM S GROUP BY K;",
        "DEFINE t='{}'; CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='${{t}}');",
    ],
)
def test_nothing_is_declared_over_a_closed_topic(topic, text):
    harmless(world(), text.format(topic), f"internal topic: {topic}")


@pytest.mark.parametrize("topic", READ_ONLY)
@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM X WITH (KAFKA_TOPIC='{}') AS SELECT * FROM S;",
        "CREATE STREAM `{}` AS SELECT * FROM S;",
        "CREATE STREAM X (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='{}');"
        "INSERT INTO X SELECT * FROM S;",
        "CREATE STREAM X (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='{}');"
        "DROP STREAM X DELETE TOPIC;",
    ],
)
def test_read_only_topics_are_neither_written_nor_deleted(topic, text):
    harmless(world(), text.format(topic), f"read-only topic: {topic}")


@pytest.mark.parametrize("topic", [*CLOSED, *READ_ONLY])
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO X SELECT * FROM S;",
        "INSERT INTO X (K, A) VALUES ('k', 1);",
        "DROP STREAM X DELETE TOPIC;",
    ],
)
def test_declarations_of_older_versions_are_harmless(topic, text):
    harmless(over(world(), topic), text, f"read-only topic: {topic}")


@pytest.mark.parametrize("topic", CLOSED)
def test_nor_is_it_read(topic):
    topics = over(world(), topic)
    harmless(topics, "CREATE STREAM Y AS SELECT * FROM X;", f"Cannot read internal topic: {topic}")
    reads = QueryService(topics.engine, None, None, None, lambda: 1000)
    for text in ("SELECT * FROM X EMIT CHANGES;", "SELECT * FROM X;", f"PRINT '{topic}';"):
        with pytest.raises(RequestFailed) as caught:
            reads.open(text, topics.services, topics.settings, {}, {})
        assert f"internal topic: {topic}" in caught.value.error.text()


def test_rows_that_stream_in_are_refused_alike():
    topics = over(world(), "__consumer_offsets")
    with pytest.raises(topic_acl.ReadOnlyTopic) as caught:
        RowWriter("X", Request(topics.services, topics.settings))
    assert caught.value.message == ("Cannot insert values into read-only topic: __consumer_offsets")


def test_the_prefix_of_new_topics_leads_nowhere_else():
    world_ = World(S)
    world_.settings = Settings({**world_.settings.server, "ksql.output.topic.name.prefix": "_conf"})
    harmless(world_, "CREATE STREAM `luent-ksql-x` AS SELECT * FROM S;", "internal topic")
    harmless(world_, "CREATE STREAM `luent-x` AS SELECT * FROM S;", "read-only topic: _confluent-x")


def test_the_processing_log_can_be_read():
    world_ = world()
    world_.run(
        "CREATE STREAM L (A INT) WITH (KAFKA_TOPIC='default_ksql_processing_log');"
        "CREATE STREAM M AS SELECT * FROM L; DROP STREAM M; DROP STREAM L;"
    )
    world_.settings = Settings(
        {**world_.settings.server, "ksql.logging.processing.topic.name": "s"}
    )
    harmless(world_, "INSERT INTO S (A) VALUES (1);", "read-only topic: s")


def test_an_operator_names_more_topics_but_opens_none_of_the_service():
    world_ = world()
    world_.settings = Settings({**world_.settings.server, topic_acl.READ_ONLY: "s, x.*"})
    harmless(
        world_, "INSERT INTO S (A) VALUES (1);", "Cannot insert values into read-only topic: s"
    )
    harmless(world_, "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='xy', PARTITIONS=1);", "create")
    world_.settings = Settings({**world_.settings.server, topic_acl.READ_ONLY: ""})
    harmless(world_, "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='_schemas');", "internal topic")
    world_.run("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='_confluent-metrics');")


def test_a_session_cannot_change_what_is_read_only():
    harmless(World(S), "SET 'ksql.readonly.topics'='';", "server's configuration")


def test_a_pattern_that_is_none_is_reported_at_the_start():
    with pytest.raises(topic_acl.BadTopicPattern) as caught:
        topic_acl.check_patterns(Settings({topic_acl.READ_ONLY: "a,(b"}))
    assert "ksql.readonly.topics has the pattern '(b'" in caught.value.text()


def test_a_stored_plan_does_not_reach_a_closed_topic():
    world_ = World(S, "CREATE STREAM C AS SELECT * FROM S;")
    plan = plan_of(world_.query("C"))
    topic_acl.check_plan(plan, world_.settings)
    forged = replace(plan, sink=replace(plan.sink, topic=CLOSED[0]))
    with pytest.raises(INTERNAL_TOPIC.base, match="Cannot write to internal topic"):
        topic_acl.check_plan(forged, world_.settings)
    for topic in CLOSED:
        reading = over(World(S), topic)
        replay(reading, PutSource(replace(reading.catalog.source("X"), topic="x")))
        reading.topic("x")
        reading.run("CREATE STREAM C AS SELECT * FROM X;")
        read = plan_of(reading.query("C"))
        source = replace(read.sink.source.source, topic=topic)
        sink = replace(read.sink, source=replace(read.sink.source, source=source))
        with pytest.raises(INTERNAL_TOPIC.base, match="Cannot read internal topic"):
            topic_acl.check_plan(replace(read, sink=sink), world_.settings)


def test_a_source_tables_query_keeps_its_own_changelog_and_no_other():
    world_ = World(
        "CREATE SOURCE TABLE T (K INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
    )
    [query] = world_.catalog.queries.values()
    plan = plan_of(query)
    topic_acl.check_plan(plan, world_.settings)
    with pytest.raises(INTERNAL_TOPIC.base, match=INTERNAL_TOPIC.pattern):
        topic_acl.check_plan(replace(plan, query_id="CST_U_9"), world_.settings)
    table = world_.catalog.source("T")
    kept = replace(table.materialization, topic=CLOSED[0])
    world_.topic(CLOSED[0])
    replay(world_, PutSource(replace(table, materialization=kept)))
    world_.run("DROP TABLE T;")
    assert CLOSED[0] in world_.topics.known
