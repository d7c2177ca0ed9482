"""Requests of several statements: all checked first, then executed in turn."""

from __future__ import annotations

import pytest

from ksql.control.engine.ports import CommandStatus
from ksql.control.statements import entities as e
from ksql.control.statements import execute as module
from ksql.control.statements.execute import RequestFailed, is_distributed, session
from ksql.control.statements.sandbox_topics import SandboxTopics
from ksql.core.errors import ServerError
from ksql.exec.memory.driver import MemoryRunner
from ksql.formats.schema_registry import MemoryRegistry, Schema
from ksql.sql.catalog.model import Topic
from ksql.sql.syntax.parser import parse_one
from server.wire import to_wire
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
R = S.replace("STREAM S", "STREAM R").replace("'s'", "'r'")
COPY = "CREATE STREAM C AS SELECT * FROM S;"


def failed(world, text, **more):
    with pytest.raises(RequestFailed) as caught:
        world.run(text, **more)
    return caught.value


def test_each_statement_has_its_answer():
    answers = World().run(f"-- first\n{S}\n\n{COPY} SHOW STREAMS;")
    assert [type(answer).__name__ for answer in answers] == [
        "CurrentStatus",
        "CurrentStatus",
        "Streams",
    ]
    assert answers[0].statement_text == S
    assert (answers[1].command_id, answers[1].command_sequence_number) == ("stream/`C`/create", 1)
    assert answers[1].command_status == CommandStatus(
        "SUCCESS", "Created query with ID CSAS_C_1", "CSAS_C_1"
    )
    assert [row.name for row in answers[2].streams] == ["C", "S"]


def test_a_later_mistake_keeps_all_from_running():
    world = World()
    error = failed(world, S + COPY + "DROP STREAM NOWHERE;")
    assert error.error.message == "Stream NOWHERE does not exist."
    assert error.statement_text == "DROP STREAM NOWHERE;"
    assert error.entities == ()
    assert dict(world.catalog.sources) == {}
    assert world.topics.known == {}


def test_the_sandbox_knows_what_the_statements_before_would_do():
    world = World()
    world.run(
        S
        + "CREATE TYPE P AS STRUCT<X INT>;"
        + "CREATE STREAM T (V P) WITH (KAFKA_TOPIC='s');"
        + R
        + "INSERT INTO S SELECT * FROM R;"
        + "TERMINATE INSERTQUERY_4; DROP STREAM T; DROP STREAM S DELETE TOPIC;"
        + S.replace("PARTITIONS=1", "PARTITIONS=3")
    )
    assert world.topics.known["s"].partitions == 3
    assert dict(world.catalog.queries) == {}


def test_terminate_counts_for_what_follows():
    world = World(S, R, "INSERT INTO S SELECT * FROM R;")
    error = failed(world, "DROP STREAM S;")
    assert "INSERTQUERY_2" in error.error.message
    world.run("TERMINATE ALL; DROP STREAM S; DROP STREAM R;")
    assert dict(world.catalog.sources) == {}


def test_a_failure_at_run_time_reports_what_was_done_before():
    failing = ServerError("no room")

    class Full(MemoryRunner):
        def start(self, query):
            raise failing

    world = World(runner=Full)
    error = failed(world, S + COPY)
    assert (error.error, error.statement_text) == (failing, COPY)
    assert [type(entity) for entity in error.entities] == [e.CurrentStatus]
    assert list(world.catalog.sources) == ["S"]


def test_properties_and_variables_hold_from_their_statement_on():
    world = World()
    answers = world.run(
        "SET 'auto.offset.reset'='latest'; DEFINE place='tt';"
        "CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='${place}', PARTITIONS=1);"
        "SHOW VARIABLES; UNDEFINE place; SHOW VARIABLES; UNSET 'auto.offset.reset';"
    )
    assert world.catalog.source("S").topic == "tt"
    assert [v.variables for v in answers if isinstance(v, e.Variables)] == [
        (e.Variable("place", "tt"),),
        (),
    ]
    assert world.log.commands[0].properties == (("auto.offset.reset", "latest"),)


def test_variables_of_the_request_and_substitution_switched_off():
    world = World()
    text = "CREATE STREAM ${name} (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    world.run(text, {"name": "FROM_OUTSIDE"})
    assert list(world.catalog.sources) == ["FROM_OUTSIDE"]
    failed(world, text, variables={"name": "X"}, **{"ksql.variable.substitution.enable": "false"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The request has no statement."),
        ("  -- nothing\n", "The request has no statement."),
        ("SHOW STREAMS", None),
        ("SHOW 'STREAMS;", None),
        ("UNSET 'auto.offset.rest';",
         "Cannot unset property: auto.offset.rest was not set"),
        ("SET 'nothing'='x';",
         "Not recognizable as ksql, streams, consumer, or producer property: 'nothing'"),
        ("SELECT * FROM S EMIT CHANGES;",
         "The following statement types should be issued to the websocket endpoint '/query': "
         "SELECT and PRINT."),
        ("PRINT s;",
         "The following statement types should be issued to the websocket endpoint '/query': "
         "SELECT and PRINT."),
        ("DROP CONNECTOR X;", "Failed to drop connector X: no Kafka Connect is configured"),
        ("DESCRIBE CONNECTOR X;", "Failed to describe connector X: no Kafka Connect is configured"),
        ("CREATE SINK CONNECTOR IF NOT EXISTS X WITH ('a'='b');",
         "Failed to create connector X: no Kafka Connect is configured"),
        ("ALTER SYSTEM 'auto.offset.reset'='earliest';",
         "ALTER SYSTEM requires 'ksql.runtime.feature.shared.enabled' to be true, "
         "but each query has a runtime of its own."),
    ],
)  # fmt: skip
def test_requests_that_fail(text, message):
    error = failed(World(S), text)
    if message is not None:
        assert error.error.message == message
    assert error.entities == ()


def test_a_property_of_the_request_that_cannot_be_set():
    error = failed(World(), "SHOW STREAMS;", **{"ksql.service.id": "x"})
    assert error.statement_text == ""


def test_the_undefined_variable_is_a_warning():
    [answer] = World().run("UNDEFINE x;")
    assert answer.message == "Cannot undefine variable 'x' which was never defined"


def test_if_not_exists_answers_with_a_warning():
    [answer] = World(S).run(S.replace("STREAM S", "STREAM IF NOT EXISTS S"))
    assert isinstance(answer, e.WarningEntity)
    assert answer.message.startswith("Cannot add stream 'S'")


def test_a_refused_upgrade_goes_into_the_book():
    seen = []

    class Book:
        def refused(self, upgrade):
            seen.append((upgrade.old.id, upgrade.verdict.classes))

    world = World(S, COPY, history=Book())
    failed(world, "CREATE OR REPLACE STREAM C AS SELECT K AS X, A FROM S;")
    assert seen == [("CSAS_C_1", ("unsupported",))]


def test_a_push_query_is_ended_by_its_id():
    world = World(S)
    closed = []

    def close(query_id):
        closed.append(query_id)
        return query_id == "P1"

    world.services.close_push = close
    [answer] = world.run("TERMINATE P1;")
    assert (answer.query_id, answer.was_terminated) == ("P1", True)
    assert failed(world, "TERMINATE P2;").error.message == "Unknown queryId: P2"
    assert closed == ["P1", "P2"]


def test_pretended_topics():
    world = World(S)
    topics = SandboxTopics(world.topics)
    topics.create(Topic("new", 2))
    assert topics.describe("new").partitions == 2
    assert topics.describe("s").partitions == 1
    topics.delete(["new", "s"])
    assert topics.describe("new") is topics.describe("s") is None
    assert set(world.topics.known) == {"s"}


# --- through the command topic or not


@pytest.mark.parametrize(
    ("text", "distributed"),
    [
        (S, True),
        ("SHOW STREAMS; DESCRIBE S;", False),
        ("INSERT INTO S (K, A) VALUES ('k', 1);", False),
        (f"SHOW STREAMS; {COPY}", True),
        ("SET 'auto.offset.reset'='earliest'; SHOW QUERIES;", False),
        ("DEFINE n = 'T'; CREATE TYPE ${n} AS STRUCT<A INT>;", True),
        ("CREATE TYPE P AS STRUCT<A INT>; CREATE STREAM T (A P) WITH (KAFKA_TOPIC='t');", True),
        ("TERMINATE CSAS_C_1;", True),
        ("TERMINATE ALL;", True),
        ("TERMINATE transient_S_1;", False),  # a push query of this server, or of none
        ("EXPLAIN CSAS_C_1;", False),
        ("SHOW WHATEVER;", False),  # whoever reads it refuses it
        ("DROP STREAM S; SHOW WHATEVER;", True),
    ],
)
def test_changing_statements_need_the_leader(text, distributed):
    world = World()
    world.run(f"{S} {COPY}")
    request = session(world.services, world.settings, {}, {})
    assert is_distributed(text, request) is distributed
    assert set(world.engine.catalog.sources) == {"S", "C"}


def test_a_request_without_statements_is_refused_where_it_comes():
    world = World()
    with pytest.raises(RequestFailed):
        is_distributed(" ", session(world.services, world.settings, {}, {}))


def test_without_kafka_connect_the_lists_are_empty_and_end_no_script():
    listed, sources, plugins, dropped, _ = World().run(
        "SHOW CONNECTORS; LIST SOURCE CONNECTORS; SHOW CONNECTOR PLUGINS; "
        "DROP CONNECTOR IF EXISTS C; SHOW STREAMS;"
    )
    assert to_wire(listed) == {
        "@type": "connector_list",
        "statementText": "SHOW CONNECTORS;",
        "warnings": [
            {
                "message": "no Kafka Connect is configured. Set ksql.connect.url to the address of "
                "one, or ksql.connect.embedded=true to start one here."
            }
        ],
        "connectors": [],
    }
    assert sources.connectors == ()
    assert plugins.connectors_plugins == ()
    assert [each.type_name for each in (plugins, dropped)] == [
        "connector_plugins_list",
        "warning_entity",
    ]
    assert dropped.message == "Connector 'C' does not exist."


@pytest.fixture
def read(monkeypatch):
    """The texts that were parsed, in order."""
    texts = []

    def counted(raw, **names):
        texts.append(raw.text)
        return parse_one(raw, **names)

    monkeypatch.setattr(module, "parse_one", counted)
    return texts


NAMED = (
    "DEFINE place = 'here';",
    "CREATE TYPE P AS STRUCT<X INT>;",
    "CREATE STREAM A (V P) WITH (KAFKA_TOPIC='${place}', PARTITIONS=1);",
    "DEFINE place = 'there';",
    "DROP TYPE P;",
    "CREATE TYPE P AS BIGINT;",
    "CREATE STREAM B (V P) WITH (KAFKA_TOPIC='${place}', PARTITIONS=1);",
    "UNDEFINE place;",
    "INSERT INTO B (V) VALUES (1);",
)


def test_a_statement_is_parsed_once_whatever_those_before_it_define(read):
    world = World()
    world.run("".join(NAMED))
    assert tuple(read) == NAMED
    sources = world.catalog.sources
    assert {name: (source.topic, str(source.schema)) for name, source in sources.items()} == {
        "A": ("here", "`V` STRUCT<`X` INTEGER>"),
        "B": ("there", "`V` BIGINT"),
    }


def test_one_that_waits_is_not_parsed_again(read):
    text = "ASSERT SCHEMA SUBJECT 'late-value' TIMEOUT 1 MINUTE;"
    registry = MemoryRegistry()
    running = World(registry=registry).running(text)
    assert running.proceed() is None
    registry.register("late-value", Schema("AVRO", '"string"'))
    assert running.proceed() is not None
    assert read == [text]


def test_a_type_that_another_request_has_changed_since_holds(read):
    world = World()
    world.run("CREATE TYPE P AS INT;")
    text = "CREATE STREAM A (V P) WITH (KAFKA_TOPIC='a', PARTITIONS=1);"
    running = world.running(text)
    world.run("DROP TYPE P; CREATE TYPE P AS STRING;")
    assert running.proceed() is not None
    assert str(world.catalog.sources["A"].schema) == "`V` STRING"
    assert read.count(text) == 2


def test_a_type_that_another_request_has_dropped_since_is_missed():
    world = World()
    world.run("CREATE TYPE P AS INT;")
    running = world.running("CREATE STREAM A (V P) WITH (KAFKA_TOPIC='a', PARTITIONS=1);")
    world.run("DROP TYPE P;")
    with pytest.raises(RequestFailed, match="P"):
        running.proceed()
    assert not world.catalog.sources


@pytest.mark.parametrize(
    "wrong",
    [
        "INSERT INTO NOPE VALUES (1);",
        "INSERT INTO I VALUES (1, 1);",
        "INSERT INTO I (K, ROWTIME) VALUES ('a', -1);",
        "DELETE FROM I WHERE K = 'a';",
    ],
)
def test_a_row_that_cannot_be_written_refuses_the_whole_request(wrong):
    world = World("CREATE STREAM I (K STRING KEY, A INT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);")
    before = world.catalog
    create = "CREATE STREAM J (A INT) WITH (KAFKA_TOPIC='j', PARTITIONS=1);"
    with pytest.raises(RequestFailed) as caught:
        world.run(f"INSERT INTO I VALUES ('a', 1); {create} INSERT INTO J VALUES (1); {wrong}")
    assert caught.value.statement_text == wrong
    assert (world.catalog, world.out("i")) == (before, [])
