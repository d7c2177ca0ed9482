"""SHOW, DESCRIBE and EXPLAIN: what is told of what exists."""

from __future__ import annotations

import pytest

from ksql.control.planning.plan_queries import transient_plan
from ksql.control.statements import entities as e
from ksql.control.statements.describe import SPARK_PLAN
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.services import OpenPush, QueryHealth, StageState
from ksql.core.config import Settings
from ksql.exec.dataflow.topic_acl import matching
from tests.unit.world import StillMonitor, World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2, TIMESTAMP='a');
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE STREAM C AS SELECT * FROM S;
CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K;
CREATE TYPE P AS STRUCT<X INT>;
"""


class BusyMonitor(StillMonitor):
    """Knows one query that reads and fails."""

    def health(self, query_id):
        if query_id == "CSAS_C_2":
            return QueryHealth(
                state="RUNNING",
                errors=((0, "went wrong"),),
                rows_in=30,
                rows_out=20,
                rows_in_per_s=2.5,
                rows_out_per_s=2.0,
                last_ms=1000,
            )
        if query_id == "CTAS_N_3":
            state = StageState(0, 1_234_567, 89_000_000, 1)
            return QueryHealth(
                state="ERROR",
                rows_out=2_500_000,
                stages=(state,),
                store="rocksdb, 2 partitions",
                warnings=((9, "the store of partition 1 is filled again: Corruption"),),
            )
        return QueryHealth(state="ERROR")

    def spark_plan(self, query_id):
        return "== Physical Plan ==" if query_id == "CSAS_C_2" else ""

    def skipped(self, query_id):
        return 1 if query_id == "CSAS_C_2" else 0

    def committed(self, query_id):
        return {"s": {0: 5, 1: 0}} if query_id == "CSAS_C_2" else {}

    def topics(self):
        return {"s": [1, 1], "C": [1], "_confluent-x": [1]}

    def ends(self, topics):
        return {(topic, 0): (2, 9) for topic in topics}


def world():
    world_ = World(SETUP)
    world_.services.monitor = BusyMonitor()
    return world_


def one(text, **more):
    [answer] = world().run(text, **more)
    assert answer.statement_text == text
    return answer


def failed(text):
    with pytest.raises(RequestFailed) as caught:
        world().run(text)
    return caught.value.error


def test_sources():
    assert one("SHOW STREAMS;").streams == (
        e.SourceInfo(
            type="STREAM",
            name="C",
            topic="C",
            key_format="KAFKA",
            value_format="JSON",
            is_windowed=False,
        ),
        e.SourceInfo(
            type="STREAM",
            name="S",
            topic="s",
            key_format="KAFKA",
            value_format="JSON",
            is_windowed=False,
        ),
    )
    assert [(t.name, t.is_windowed) for t in one("LIST TABLES;").tables] == [
        ("N", True),
        ("T", False),
    ]
    descriptions = one("SHOW STREAMS EXTENDED;").source_descriptions
    assert [d.name for d in descriptions] == ["C", "S"]
    assert descriptions[0].write_queries[0].id == "CSAS_C_2"


def test_queries():
    rows = one("SHOW QUERIES;").queries
    assert [(row.id, row.state, row.sinks) for row in rows] == [
        ("CSAS_C_2", "RUNNING", ("C",)),
        ("CTAS_N_3", "ERROR", ("N",)),
    ]
    [first, _] = one("SHOW QUERIES EXTENDED;").query_descriptions
    assert first.query_errors == (e.QueryErrorInfo(0, "went wrong", "UNKNOWN"),)
    assert first.sources == ("S",)
    assert first.execution_plan.startswith("> [ SINK ] stream C")


def test_topics():
    assert [t.name for t in one("SHOW TOPICS;").topics] == ["C", "s"]
    assert [t.name for t in one("SHOW ALL TOPICS;").topics] == ["C", "_confluent-x", "s"]
    consumers = {t.name: t.consumer_count for t in one("SHOW TOPICS EXTENDED;").topics}
    assert consumers == {"C": 0, "s": 1}


@pytest.mark.parametrize(
    ("patterns", "name", "hidden"),
    [("a.*, b", "ab", True), ("a.*, b", "bb", False), ("", "a", False), (" , ", "", False)],
)
def test_hidden_topics(patterns, name, hidden):
    assert bool(matching("ksql.hidden.topics", patterns).fullmatch(name)) == hidden


def test_functions_and_types():
    names = {f.name: f.type for f in one("SHOW FUNCTIONS;").functions}
    assert (names["UCASE"], names["COUNT"]) == ("SCALAR", "AGGREGATE")
    assert {name: str(t) for name, t in one("SHOW TYPES;").types.items()} == {
        "P": "STRUCT<`X` INTEGER>"
    }
    entity = one("DESCRIBE FUNCTION count;")
    assert entity.name == "COUNT"
    assert failed("DESCRIBE FUNCTION CONT;").hint


def test_properties():
    entity = one("SHOW PROPERTIES;", **{"auto.offset.reset": "latest"})
    rows = {row.name: row.value for row in entity.properties}
    assert rows["ksql.streams.auto.offset.reset"] == "latest"
    assert rows["ksql.service.id"] == "default_"
    assert "ksql.streams.auto.offset.reset" in entity.overwritten_properties
    assert "ksql.service.id" in entity.default_properties


def test_properties_show_no_password():
    world = World()
    world.settings = Settings({"ksql.connect.ssl.key.password": "hidden"})
    [entity] = world.run("SHOW PROPERTIES;")
    rows = {row.name: row.value for row in entity.properties}
    assert rows["ksql.connect.ssl.key.password"] == "***"


def test_describe():
    description = one("DESCRIBE S;").source_description
    assert [field.name for field in description.fields] == ["K", "A"]
    assert (description.timestamp, description.partitions, description.statistics) == ("A", 0, "")
    assert [q.id for q in description.read_queries] == ["CSAS_C_2", "CTAS_N_3"]
    assert description.source_constraints == ("C", "N")
    windowed = one("DESCRIBE N;").source_description
    assert windowed.window_type == "TUMBLING"


def test_describe_extended():
    description = one("DESCRIBE C EXTENDED;").source_description
    assert (description.partitions, description.replication) == (2, 1)
    assert description.statistics == (
        "messages-per-sec: 2\ntotal-messages: 20\nlast-message: 1970-01-01T00:00:01.000+00:00"
    )
    read = one("DESCRIBE S EXTENDED;").source_description.statistics
    assert "consumer-messages-per-sec: 2.5\nconsumer-total-messages: 30" in read
    assert description.error_stats == (
        "CSAS_C_2: records-skipped: 1\n  1970-01-01T00:00:00.000+00:00 went wrong"
    )
    [summary] = description.query_offset_summaries
    assert summary.group_id == "_confluent-ksql-default_query_CSAS_C_2"
    assert summary.topic_summaries[0].offsets == (
        e.PartitionOffset(0, 2, 9, 5),
        e.PartitionOffset(1, 0, 0, 0),
    )
    assert one("DESCRIBE TABLES;").source_descriptions[0].name == "N"


def test_size_of_state_is_shown():
    description = one("DESCRIBE N EXTENDED;").source_description
    assert description.statistics == (
        "messages-per-sec: 0\ntotal-messages: 2500000\n"
        "state-rows of CTAS_N_3 stage 0 AGGREGATE: 1234567\n"
        "state-bytes of CTAS_N_3 stage 0 AGGREGATE: 89000000\n"
        "CTAS_N_3: stream time: of each of 2 partitions, as in Kafka Streams\n"
        "CTAS_N_3: state of stage 0 AGGREGATE: known in 1 of 2 buckets, in each from its first "
        "record since the server began\n"
        "CTAS_N_3: store: rocksdb, 2 partitions"
    )
    assert "store of partition 1 is filled again" in description.error_stats
    assert (
        "\nstate of stage 0 AGGREGATE: 1234567 rows, 89000000 bytes in 1 of 2 buckets"
        in one("EXPLAIN CTAS_N_3;").query_description.topology
    )


def test_describe_what_is_not_there():
    error = failed("DESCRIBE SS;")
    assert error.message == "Could not find STREAM/TABLE 'SS' in the Metastore"
    assert error.hint == "Did you mean S?"


def test_explain_a_running_query():
    description = one("EXPLAIN csas_c_2;").query_description
    assert (description.id, description.state, description.query_type) == (
        "CSAS_C_2",
        "RUNNING",
        "PERSISTENT",
    )
    assert description.consumer_group_id == "_confluent-ksql-default_query_CSAS_C_2"
    assert description.topology.startswith("source 0: topic s (STREAM S)")
    assert "Physical Plan" not in description.topology
    assert description.tasks_metadata[0].topic_offsets[0].committed_offset == 5
    error = failed("EXPLAIN CSAS_C_3;")
    assert error.hint == "Did you mean CSAS_C_2?"


def test_explain_shows_sparks_plan_where_the_setting_asks_for_it():
    plain = one("EXPLAIN CSAS_C_2;").query_description.topology
    description = one("EXPLAIN CSAS_C_2;", **{SPARK_PLAN: "true"}).query_description
    assert description.topology == f"{plain}\n\n== Physical Plan =="


def test_explain_what_is_not_there_yet():
    description = one("EXPLAIN SELECT A FROM S EMIT CHANGES;").query_description
    assert (description.query_type, description.sinks) == ("PUSH", ())
    assert description.statement_text == "SELECT A FROM S EMIT CHANGES;"
    description = one("EXPLAIN CREATE STREAM X AS SELECT * FROM S;").query_description
    assert (description.id, description.upgrade, description.sinks) == ("CSAS_X_0", None, ("X",))
    description = one("EXPLAIN INSERT INTO C SELECT * FROM S;").query_description
    assert description.id == "INSERTQUERY_0"
    assert description.statement_text == "INSERT INTO C SELECT * FROM S;"


def test_explain_an_upgrade():
    text = "EXPLAIN CREATE OR REPLACE STREAM C AS SELECT *, 1 AS X FROM S WHERE A > 1;"
    description = one(text).query_description
    assert (description.id, description.upgrade.accepted) == ("CSAS_C_2", True)
    assert description.upgrade.classes == ("data selection", "schema evolution")
    refused = one("EXPLAIN CREATE OR REPLACE STREAM C AS SELECT K AS X, A FROM S;")
    report = refused.query_description.upgrade
    assert (report.accepted, report.classes, report.query_id) == (
        False,
        ("unsupported",),
        "CSAS_C_2",
    )
    assert report.reasons


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EXPLAIN CREATE STREAM IF NOT EXISTS C AS SELECT * FROM S;",
         "Cannot add stream 'C': A stream with the same name already exists"),
        ("EXPLAIN CREATE OR REPLACE STREAM S AS SELECT K AS X, A FROM S;", None),
        ("EXPLAIN SHOW STREAMS;", "The provided statement does not run a ksql query"),
    ],
)  # fmt: skip
def test_explain_refused(text, message):
    error = failed(text)
    if message:
        assert error.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ASSERT TOPIC 's' WITH (PARTITIONS=2, REPLICAS=1);", None),
        ("ASSERT TOPIC s WITH (partitions=2);", None),
        ("ASSERT NOT EXISTS TOPIC 'x' TIMEOUT 1 SECOND;", None),
        ("ASSERT TOPIC 'x' TIMEOUT 0 SECONDS;", "Topic x does not exist"),
        ("ASSERT NOT EXISTS TOPIC 's' TIMEOUT 0 SECONDS;", "Topic s exists"),
        ("ASSERT TOPIC 's' WITH (PARTITIONS=3) TIMEOUT 0 SECONDS;",
         "Mismatched configuration for topic s: For config PARTITIONS, expected 3 got 2"),
        ("ASSERT TOPIC 's' WITH (COLOUR=3) TIMEOUT 0 SECONDS;",
         "Cannot assert unknown topic property: COLOUR"),
        ("ASSERT TOPIC 's' WITH (PARTITIONS='x') TIMEOUT 0 SECONDS;",
         "PARTITIONS must be a whole number"),
    ],
)  # fmt: skip
def test_assert_topic(text, message):
    if message is None:
        assert isinstance(one(text), e.AssertTopic)
    else:
        assert failed(text).message == message


def test_push_queries_are_shown_and_explained():
    world = World(SETUP.partition("CREATE STREAM C")[0])
    text = "SELECT A FROM S EMIT CHANGES;"
    context = world.engine.context(world.settings)
    plan = transient_plan("transient_S_5", world.parse(text), context)
    world.services.pushes = lambda: [OpenPush(text, plan)]
    [shown] = world.run("SHOW QUERIES;")
    [info] = shown.queries
    assert (info.id, info.query_type, info.state) == ("transient_S_5", "PUSH", "RUNNING")
    assert (info.query_string, info.sinks) == (text, ())
    [described] = world.run("SHOW QUERIES EXTENDED;")
    [explained] = world.run("EXPLAIN transient_S_5;")
    assert described.query_descriptions == (explained.query_description,)
    assert explained.query_description.query_type == "PUSH"
    assert "[ OUTPUT ]" in explained.query_description.execution_plan


def test_the_query_of_a_source_table_is_of_a_type_of_its_own():
    world_ = World(
        "CREATE SOURCE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
    )
    [info] = world_.run("SHOW QUERIES;")[0].queries
    assert info.query_type == "CREATE_SOURCE"
    [described] = world_.run("SHOW QUERIES EXTENDED;")[0].query_descriptions
    assert (described.id, described.query_type) == (info.id, "CREATE_SOURCE")
