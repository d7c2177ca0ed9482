"""What Tab offers, place by place; ``|`` is the cursor."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ksql.control.statements.entities import (
    Entity,
    FieldInfo,
    FunctionName,
    FunctionNames,
    Properties,
    PropertyInfo,
    Queries,
    QueryInfo,
    SourceDescription,
    SourceDescriptions,
    TopicInfo,
    TopicList,
    TypeList,
)
from ksql.core.types import model
from server.cli.client import Client
from server.cli.commands import COMMANDS
from server.cli.complete import SqlCompleter
from server.cli.context import NamedSource, Names, fetch_names, quoted
from server.cli.words import FIRST, FORMATS, OPERANDS, TYPES
from tests.unit.server.fakes import FakeService

FLIGHTS = NamedSource(
    "FLIGHTS", "STREAM", (("TAIL", "STRING"), ("DELAY", "INTEGER"), ("`from`", "DATE"))
)
PLANES = NamedSource("PLANES", "TABLE", (("TAIL", "STRING"), ("SEATS", "INTEGER")))
NAMES = Names(
    sources=(FLIGHTS, PLANES, NamedSource("`my stream`")),
    functions=("UCASE", "FLOOR"),
    queries=("CSAS_A_1",),
    topics=("flights", "de-lays"),
    properties=("auto.offset.reset", "ksql.service.id"),
    types=("POINT",),
)
SOURCES = ["FLIGHTS", "PLANES", "`my stream`"]
OPERAND = ["UCASE", "FLOOR", *OPERANDS]
COLUMN_TYPES = [*TYPES, "POINT"]
JOINS = ["INNER", "LEFT", "RIGHT", "FULL", "JOIN"]
LATER = ["WINDOW", "WHERE", "GROUP", "PARTITION", "HAVING", "ORDER", "EMIT", "LIMIT", "OFFSET"]
GOES_ON = ["AND", "OR", "BETWEEN", "IN", "IS", "LIKE", "NOT"]


@pytest.fixture
def completer() -> SqlCompleter:
    sql_completer = SqlCompleter({name: entry.usage for name, entry in COMMANDS.items()})
    sql_completer.names = NAMES
    return sql_completer


def offered(completer: SqlCompleter, text: str) -> list[str]:
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    completions = completer.get_completions(document, CompleteEvent())
    return [completion.text for completion in completions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # sources
        ("SELECT * FROM ", SOURCES),
        ("select * from fl", ["FLIGHTS"]),
        ("SELECT * FROM `my", ["`my stream`"]),
        ("SELECT * FROM FLIGHTS f JOIN p", ["PLANES"]),
        ("INSERT INTO ", SOURCES),
        ("DROP TABLE ", ["PLANES"]),
        ("DROP STREAM IF EXISTS f", ["FLIGHTS"]),
        ("describe pl", ["PLANES"]),
        # columns, functions and words of an expression
        ("SELECT | FROM FLIGHTS;", ["TAIL", "DELAY", "`from`", *OPERAND]),
        ("SELECT TAIL, s| FROM PLANES", ["SEATS", "struct"]),
        ("SELECT d", ["DELAY"]),
        ("select uc", ["UCASE"]),
        ("SELECT `f| FROM FLIGHTS", ["`from`"]),
        ("SELECT * FROM FLIGHTS WHERE DE", ["DELAY"]),
        ("SELECT UCASE(t| FROM FLIGHTS", ["TAIL", "true"]),
        ("SELECT COUNT(*) FROM FLIGHTS GROUP BY ta", ["TAIL"]),
        ("SELECT f.| FROM FLIGHTS f JOIN PLANES AS P ON 1", ["TAIL", "DELAY", "`from`"]),
        ("SELECT * FROM FLIGHTS F JOIN PLANES AS p WITHIN 1 DAY ON p.s", ["SEATS"]),
        ("SELECT F| FROM FLIGHTS f JOIN PLANES p", ["`from`", "F", "FLOOR", "FALSE"]),
        ("SELECT a->", []),
        ("INSERT INTO PLANES (TAIL, ", ["TAIL", "SEATS"]),
        ("INSERT INTO PLANES (TAIL) VALUES (UC", ["UCASE"]),
        ("EXPLAIN SELECT de| FROM FLIGHTS", ["DELAY"]),
        # clauses
        ("SELECT * ", ["FROM", "AS", *GOES_ON]),
        ("SELECT * FROM FLIGHTS ", ["AS", *JOINS, *LATER]),
        ("SELECT * FROM FLIGHTS WHERE DELAY ", ["GROUP", "PARTITION", *LATER[4:], *GOES_ON]),
        ("SELECT * FROM FLIGHTS EMIT ", ["CHANGES", "FINAL"]),
        ("SELECT * FROM FLIGHTS LEFT ", ["JOIN", "OUTER"]),
        ("select * from flights emit ch", ["changes"]),
        # types
        ("CREATE STREAM s (a ", COLUMN_TYPES),
        ("CREATE STREAM s (a INT, b po", ["POINT"]),
        ("CREATE TABLE s (a INT pr", ["primary"]),
        ("CREATE STREAM s (a ARRAY<", COLUMN_TYPES),
        ("CREATE STREAM s (a STRUCT<b int", ["int", "integer"]),
        ("CREATE STREAM s (", []),
        ("CREATE TYPE t AS dec", ["decimal"]),
        ("ALTER STREAM FLIGHTS ADD COLUMN x big", ["bigint"]),
        ("SELECT CAST(DELAY AS st| FROM FLIGHTS", ["string", "struct"]),
        # the rest of a statement
        ("CREATE STREAM s (a INT) ", ["WITH", "AS"]),
        ("CREATE STREAM s (a INT) WITH (kafka", ["kafka_topic"]),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = ", ["'flights'", "'de-lays'"]),
        ("CREATE STREAM s WITH (VALUE_FORMAT='pro", ["PROTOBUF'", "PROTOBUF_NOSR'"]),
        ("CREATE STREAM s WITH (FORMAT=", [f"'{name}'" for name in FORMATS]),
        ("CREATE STREAM s WITH (FORMAT='JSON') AS ", ["SELECT"]),
        ("CREATE OR ", ["REPLACE"]),
        ("SHOW q", ["queries"]),
        ("SHOW STREAMS ", ["EXTENDED"]),
        ("DROP ", ["STREAM", "TABLE", "TYPE", "CONNECTOR"]),
        ("INSERT ", ["INTO"]),
        ("INSERT INTO PLANES ", ["VALUES", "SELECT"]),
        ("DELETE ", ["FROM"]),
        ("DELETE FROM ", ["PLANES"]),
        ("DELETE FROM PLANES ", ["WHERE"]),
        ("DELETE FROM PLANES WHERE ", ["TAIL", "SEATS"]),
        ("DELETE FROM PLANES WHERE TAIL = UC", ["UCASE"]),
        ("DELETE FROM PLANES WHERE TAIL = 'x' ", ["AND"]),
        ("PRINT ", ["flights", "'de-lays'"]),
        ("PRINT 'de", ["de-lays'"]),
        ("PRINT flights FROM ", ["BEGINNING"]),
        ("terminate c", ["CSAS_A_1"]),
        ("describe function f", ["FLOOR"]),
        ("ABORT UPGRADE OF QUERY ", ["CSAS_A_1"]),
        ("SHOW UPGRADES FOR c", ["CSAS_A_1"]),
        ("CREATE OR REPLACE QUERY ", ["CSAS_A_1"]),
        ("CREATE OR REPLACE QUERY CSAS_A_1 ", ["WITH", "AS"]),
        ("CREATE OR REPLACE QUERY CSAS_A_1 AS ", ["INSERT"]),
        ("CREATE OR REPLACE QUERY CSAS_A_1 AS INSERT ", ["INTO"]),
        ("CREATE OR REPLACE QUERY CSAS_A_1 AS INSERT INTO FLIGHTS ", ["SELECT"]),
        # properties
        ("SET ", ["cli wrap", "cli column-width", "'auto.offset.reset'", "'ksql.service.id'"]),
        ("SET 'auto", ["auto.offset.reset'"]),
        ("SET 'auto|' = 'latest'", ["auto.offset.reset"]),
        ("UNSET 'ksql", ["ksql.service.id'"]),
        ("SET 'auto.offset.reset' = '", []),
        # commands
        ("spoo", ["spool"]),
        ("set cli c", ["column-width"]),
        ("request-p", ["request-pipelining"]),
        ("output ", ["table", "json", "csv"]),
        ("timing o", ["on", "off"]),
        # another statement, another place
        ("SELECT * FROM FLIGHTS; TERMINATE ", ["CSAS_A_1", "ALL"]),
        ("selec", ["select"]),
        # nothing
        ("SELECT 1 -- from ", []),
        ("/* from ", []),
        ("SELECT 'from ", []),
    ],
)
def test_completions_fit_the_place(completer: SqlCompleter, text: str, expected: list[str]) -> None:
    assert offered(completer, text) == expected


def test_a_statement_starts_with_commands_and_verbs(completer: SqlCompleter) -> None:
    words = offered(completer, "")
    assert {*FIRST, "help", "timing", "run script"} <= set(words)
    assert "FROM" not in words


def test_a_file_is_offered_where_a_command_wants_one(
    completer: SqlCompleter, tmp_path: Path
) -> None:
    (tmp_path / "tour.sql").touch()
    assert offered(completer, f"run script '{tmp_path}/to") == ["ur.sql"]


def test_a_type_is_shown_next_to_a_column(completer: SqlCompleter) -> None:
    completions = completer.get_completions(
        Document("SELECT f.d FROM FLIGHTS f", 10), CompleteEvent()
    )
    assert [completion.display_meta_text for completion in completions] == ["INTEGER"]


PROPERTIES = (
    PropertyInfo(name="ksql.streams.p", scope="KAFKA", value="1", editable=True),
    PropertyInfo(name="listeners", scope="KSQL", value="1", editable=False),
)


def description(name: str, kind: str, *fields: FieldInfo) -> SourceDescription:
    return SourceDescription(
        name=name, type=kind, fields=fields, key_format="KAFKA", value_format="JSON", topic=name
    )


def test_names_come_from_the_server(client: Client, service: FakeService) -> None:
    fields = (FieldInfo("A", model.INTEGER, "KEY"), FieldInfo("from", model.Array(model.DATE)))
    query = QueryInfo(
        query_string="",
        sinks=(),
        sink_kafka_topics=(),
        id="Q_1",
        status_count={},
        query_type="PERSISTENT",
        state="RUNNING",
    )
    answer: list[Entity] = [
        SourceDescriptions(
            statement_text="", source_descriptions=(description("S", "STREAM", *fields),)
        ),
        SourceDescriptions(statement_text="", source_descriptions=(description("t", "TABLE"),)),
        FunctionNames(statement_text="", functions=(FunctionName("F", "SCALAR"),)),
        Queries(statement_text="", queries=(query,)),
        TopicList(statement_text="", topics=(TopicInfo("s", (1,)),)),
        Properties(statement_text="", properties=PROPERTIES),
        TypeList(statement_text="", types={"T": model.INTEGER}),
    ]
    service.answer = answer
    names = Names(
        sources=(
            NamedSource("S", "STREAM", (("A", "INTEGER"), ("`from`", "ARRAY<DATE>"))),
            NamedSource("`t`", "TABLE"),
        ),
        functions=("F",),
        queries=("Q_1",),
        topics=("s",),
        properties=("p",),
        types=("T",),
    )
    assert fetch_names(client) == names
    completer = SqlCompleter()
    completer.refresh(client).join()
    assert completer.names == names
    with closing(Client("http://127.0.0.1:1")) as nobody:
        completer.refresh(nobody).join()
    assert completer.names == names


@pytest.mark.parametrize(
    ("name", "written"), [("A_1", "A_1"), ("a", "`a`"), ("VIEW", "`VIEW`"), ("a`b", "`a``b`")]
)
def test_names_are_quoted_where_they_must_be(name: str, written: str) -> None:
    assert quoted(name) == written
