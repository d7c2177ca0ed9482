from __future__ import annotations

import builtins
import dataclasses
import io
import types
import typing
from collections import abc
from typing import Any, cast, get_args, get_origin, get_type_hints

import pytest
from rich.console import Console, RenderableType

from ksql.control.engine.ports import CommandStatus
from ksql.control.statements import entities as e
from ksql.control.statements.connector_entities import (
    ConnectorDescription,
    ConnectorInfo,
    ConnectorInfoEntity,
    ConnectorList,
    CreatedConnector,
    DropConnector,
)
from ksql.control.statements.upgradereport import SwitchPoint, UpgradeReport
from ksql.core.types import model as m
from ksql.sql.upgrade.verdict import Difference, Guarantee, Verdict
from server.cli.client import ServerFailure
from server.cli.error_text import render_trouble
from server.cli.render import RENDERERS, render
from server.cli.split import Statement
from server.wire import to_wire
from tests.unit.server.test_wire import ENTITIES

FIELDS = (
    e.FieldInfo("ID", m.INTEGER, "KEY"),
    e.FieldInfo("V", m.Array(m.STRING)),
    e.FieldInfo("H", m.BYTES, "HEADER", "h"),
    e.FieldInfo("HS", m.BYTES, "HEADER"),
)
QUERY = e.QueryInfo(
    query_string="CREATE STREAM B AS\n  SELECT * FROM A;",
    sinks=("B",),
    sink_kafka_topics=("b-topic",),
    id="CSAS_B_3",
    status_count={"RUNNING": 1, "ERROR": 2},
    query_type="PERSISTENT",
    state="RUNNING",
)
OFFSETS = e.QueryOffsetSummary(
    "group-1", (e.TopicOffsets("a-topic", (e.PartitionOffset(0, 0, 120, 100),)),)
)
SOURCE = e.SourceDescription(
    name="B",
    type="TABLE",
    fields=FIELDS,
    key_format="KAFKA",
    value_format="JSON",
    topic="b-topic",
    window_type="TUMBLING",
    read_queries=(QUERY,),
    extended=True,
    partitions=4,
    replication=1,
    statement="CREATE TABLE B ...;",
    query_offset_summaries=(OFFSETS,),
    source_constraints=("C",),
    cluster_statistics=(e.HostStatistic("h:1", "total-messages", 12.0, 0),),
)
SWITCH = SwitchPoint(12, {"a-topic": {"0": 100, "1": 90}}, 340)
ACCEPTED = Verdict(
    classes=("data selection", "schema evolution"),
    traits=("stateful",),
    guarantees=(
        Guarantee("backfill", False, "starts empty"),
        Guarantee("ordered", True, "one offset"),
    ),
    changes=(Difference("data selection", "WHERE", "changed", True),),
)
REFUSED = Verdict(
    classes=("source modifying",),
    traits=("simple",),
    guarantees=ACCEPTED.guarantees,
    changes=(
        Difference("data selection", "WHERE", "changed", True),
        Difference("source modifying", "FROM", "A became C", False),
    ),
)
RUNNING = e.QueryDescription(
    id="CSAS_B_3",
    statement_text="CREATE ...;",
    fields=FIELDS,
    sources=("A",),
    sinks=("B",),
    topology="source -> sink",
    execution_plan="sink\n  scan",
    ksql_host_query_status={"h:1": "RUNNING"},
    overridden_properties={"auto.offset.reset": "earliest"},
    query_errors=(e.QueryErrorInfo(0, "topic missing", "USER"),),
    tasks_metadata=(
        e.TaskMetadata("0_1", (e.TaskTopicOffset(e.TopicPartition("a-topic", 1), 9, 7),)),
    ),
    consumer_group_id="group-1",
    state="RUNNING",
)
_OF_ALL = {field.name for field in dataclasses.fields(e.Entity)}
EXAMPLES: dict[type[e.Entity], tuple[dict[str, Any], list[str]]] = {
    e.CurrentStatus: (
        {
            "command_id": "stream/`S`/create",
            "command_status": CommandStatus("QUEUED", "Statement written"),
        },
        ["Statement written", "QUEUED: ask /status/stream/`S`/create for its end"],
    ),
    e.WarningEntity: ({"message": "S exists [already]"}, ["S exists [already]"]),
    e.Properties: (
        {
            "properties": (
                e.PropertyInfo(name="b", scope="KSQL", value="1"),
                e.PropertyInfo(name="a", scope="KAFKA", value="x"),
                e.PropertyInfo(name="c", scope="KSQL", value=None),
            ),
            "overwritten_properties": ("a",),
            "default_properties": ("c",),
        },
        ["a KAFKA SESSION x", "b KSQL SERVER 1", "c KSQL"],
    ),
    e.Streams: (
        {
            "streams": (
                e.SourceInfo(
                    type="STREAM", name="S", topic="s", key_format="KAFKA", value_format="JSON"
                ),
            )
        },
        ["Stream Name Kafka Topic", "S s KAFKA JSON false"],
    ),
    e.Tables: ({"tables": ()}, ["No tables."]),
    e.SourceDescriptions: ({"source_descriptions": (SOURCE,)}, ["Name B"]),
    e.SourceDescriptionEntity: (
        {"source_description": SOURCE},
        [
            "ID INTEGER (primary key) (Window type: TUMBLING)",
            "V ARRAY<STRING>",
            "H BYTES (header('h'))",
            "HS BYTES (headers)",
            "Kafka topic b-topic (partitions: 4, replication: 1)",
            "CSAS_B_3 (RUNNING) CREATE STREAM B AS SELECT * FROM A;",
            "h:1 total-messages: 12",
            "Consumer group group-1",
            "a-topic 0 0 120 100 20",
        ],
    ),
    e.Queries: (
        {"queries": (QUERY,)},
        ["CSAS_B_3 PERSISTENT RUNNING:1,ERROR:2 B b-topic CREATE STREAM B AS SELECT * FROM A;"],
    ),
    e.QueryDescriptions: ({"query_descriptions": (RUNNING,)}, ["ID CSAS_B_3"]),
    e.QueryDescriptionEntity: (
        {"query_description": RUNNING},
        [
            "State RUNNING",
            "Hosts h:1: RUNNING",
            "ID INTEGER (key)",
            "Execution plan",
            "sink scan",
            "auto.offset.reset earliest",
            "1970-01-01 00:00:00 USER topic missing",
            "0_1 a-topic 1 9 7",
        ],
    ),
    e.TopicList: (
        {"topics": (e.TopicInfo("a", (1, 1)), e.TopicInfo("b", (1, 2)))},
        ["a 2 1", "b 2 1, 2"],
    ),
    e.TopicListExtended: ({"topics": (e.TopicInfoExtended("a", (1,), 3, 2),)}, ["a 1 1 3 2"]),
    e.DescribeFunction: (
        {
            "name": "F",
            "type": "SCALAR",
            "description": "Does it",
            "functions": (
                e.FunctionInfo((e.ArgumentInfo("x", "INT", "the input"),), "INT"),
                e.FunctionInfo((e.ArgumentInfo("x", "INT", "", True),), "INT", "other"),
            ),
        },
        ["Overview Does it", "F(x INT) -> INT x the input", "F(x INT[]) -> INT other"],
    ),
    e.FunctionNames: ({"functions": (e.FunctionName("F", "TABLE", "MISC"),)}, ["F TABLE MISC"]),
    e.TypeList: (
        {"types": {"T": m.Struct((m.Field("A", m.BIGINT),))}},
        ["T STRUCT<A BIGINT>"],
    ),
    e.Variables: ({"variables": (e.Variable("v", "[x]"),)}, ["v [x]"]),
    e.TerminateQuery: (
        {"query_id": "transient_1", "was_terminated": True},
        ["Query transient_1 was terminated."],
    ),
    e.AssertTopic: ({"topic_name": "t", "exists": False}, ["Topic t does not exist."]),
    e.AssertSchema: (
        {"subject": "s-value", "id": 3, "exists": True},
        ["Schema of subject s-value with id 3 exists."],
    ),
}


def drawn(shown: RenderableType, width: int = 200) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(shown)
    return out.getvalue()


def squeezed(text: str) -> str:
    return " ".join(text.split())


def shown(entity: e.Entity, width: int = 200) -> str:
    wire = to_wire(entity)
    assert isinstance(wire, dict)
    return drawn(render(wire), width)


def sample(hint: Any, name: str) -> Any:
    """Return a value of a field's type."""
    of = get_args(hint)
    match get_origin(hint) or hint:
        case builtins.str:
            return f"the {name}"
        case builtins.tuple:
            return (sample(of[0], name),)
        case abc.Mapping:
            return {sample(of[0], name): sample(of[1], name)}
        case typing.Literal:
            return of[0]
        case types.UnionType | typing.Union:
            return m.BIGINT if m.Array in of else sample(of[0], name)
        case kind if dataclasses.is_dataclass(kind):
            return cast("Any", kind)(**samples(kind))
        case kind:
            return kind(7)


def samples(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    of_all = _OF_ALL if issubclass(kind, e.Entity) else ()
    names = (field.name for field in dataclasses.fields(kind) if field.name not in of_all)
    return {name: sample(hints[name], name) for name in names}


def example(kind: type[e.Entity]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of an entity and the parts that must be on the screen.

    An entity without an example of its own is drawn with any values; its own texts must be there.
    """
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    fields = samples(kind)
    return fields, [value for value in fields.values() if isinstance(value, str)]


def test_every_type_has_its_renderer() -> None:
    assert {kind.type_name for kind in ENTITIES} <= set(RENDERERS)
    assert set(EXAMPLES) <= set(ENTITIES)


@pytest.mark.parametrize("kind", ENTITIES, ids=lambda kind: kind.type_name)
def test_any_values_can_be_drawn(kind: type[e.Entity]) -> None:
    entity = kind(statement_text="X;", **samples(kind))
    assert "the " in shown(entity)


@pytest.mark.parametrize("kind", ENTITIES, ids=lambda kind: kind.type_name)
def test_an_entity_on_the_screen(kind: type[e.Entity]) -> None:
    fields, parts = example(kind)
    entity = kind(statement_text="X;", **fields)
    text = squeezed(shown(entity))
    for part in parts:
        assert part in text
    for width in (20, 46):  # anything goes, as long as it goes
        assert max(map(len, shown(entity, width).splitlines())) <= width
    warned = dataclasses.replace(entity, warnings=(e.EntityWarning("careful"),))
    assert shown(warned).startswith("WARNING: careful\n")


def test_a_narrow_terminal_gets_a_block_per_row() -> None:
    entity = e.Queries(statement_text="", queries=(QUERY,))
    lines = [line.rstrip() for line in shown(entity, 46).splitlines()]
    assert "Query ID    CSAS_B_3" in lines
    assert "Sink Topic  b-topic" in lines


def test_a_type_from_a_newer_server_is_shown_as_json() -> None:
    assert '"x": "é"' in drawn(render({"@type": "new", "x": "é"}))


def status(verdict: Verdict, switch: SwitchPoint | None) -> e.CurrentStatus:
    return e.CurrentStatus(
        statement_text="",
        command_id="stream/`B`/create",
        command_status=CommandStatus("SUCCESS", "Created query with ID CSAS_B_3"),
        upgrade=UpgradeReport.of(verdict, "CSAS_B_3", switch),
    )


def test_an_accepted_upgrade() -> None:
    text = shown(status(ACCEPTED, SWITCH))
    assert [line.rstrip() for line in text.splitlines()] == [
        "Created query with ID CSAS_B_3",
        "Upgrade of CSAS_B_3 accepted: data selection, schema evolution",
        "  query is    stateful",
        "  changes     ok  WHERE: changed (data selection)",
        "  guarantees  backfill  no   starts empty",
        "              ordered   yes  one offset",
        "  switched    after batch 12, gap 340 ms",
        "              a-topic: partition 0 at 100, 1 at 90",
    ]


def test_a_dry_run_that_would_be_refused() -> None:
    description = dataclasses.replace(RUNNING, upgrade=UpgradeReport.of(REFUSED, "CSAS_B_3"))
    text = shown(e.QueryDescriptionEntity(statement_text="", query_description=description))
    assert "Upgrade of CSAS_B_3 would be refused: source modifying" in text
    no = text.index("no  FROM: A became C (source modifying)")
    assert no < text.index("ok  WHERE: changed")
    assert "guarantees" not in text


def test_the_last_upgrade_of_a_running_query() -> None:
    report = UpgradeReport.of(ACCEPTED, "CSAS_B_3", SWITCH)
    description = dataclasses.replace(RUNNING, upgrade=report)
    text = shown(e.QueryDescriptionEntity(statement_text="", query_description=description))
    assert "Upgrade of CSAS_B_3 accepted: data selection" in text
    assert "switched    after batch 12, gap 340 ms" in text


def lines_of(error: Exception, text: str = "", width: int = 80) -> list[str]:
    return drawn(render_trouble(error, Statement(text), "", width), width).splitlines()


def test_an_error_points_at_its_place() -> None:
    failure = ServerFailure(40001, "line 2:6: no column [x]\nDid you mean Y?")
    assert lines_of(failure, "SELECT\n a + x\nFROM s;") == [
        "line 2:6: no column [x]",
        "   a + x",
        "       ^",
        "Did you mean Y?",
    ]
    of_ksqldb = ServerFailure(40001, "Line: 2, Col: 6: no column [x]")
    assert lines_of(of_ksqldb, "SELECT\n a + x\nFROM s;")[1:] == ["   a + x", "       ^"]
    with_text = ServerFailure(40001, "line 1:1: no", "FOO;")
    assert lines_of(with_text, "other") == ["line 1:1: no", "  FOO;", "  ^"]


def test_a_long_line_is_shown_around_the_place() -> None:
    failure = ServerFailure(40001, "line 1:101: no")
    shown_line, caret = lines_of(failure, "a" * 100 + "B" + "c" * 100, 40)[1:]
    assert len(shown_line) <= 40
    assert shown_line[len(caret) - 1] == "B"


def test_a_place_that_is_not_in_the_text_has_no_caret() -> None:
    assert lines_of(ServerFailure(40001, "line 9:1: no"), "x") == ["line 9:1: no"]
    assert lines_of(ServerFailure(40001, "line 1:9: no"), "x") == ["line 1:9: no"]


@pytest.mark.parametrize(
    ("message", "script", "expected"),
    [
        ("line 1:3: no", "", "line 4:8: no"),
        ("line 1:3: no", "a.sql", "a.sql, line 4:8: no"),
        ("line 2:1: no\nnear x at line 2:1", "a.sql", "a.sql, line 5:1: no"),
        ("Cannot prepare: line 2:1: no", "", "Cannot prepare: line 5:1: no"),
        ("Cannot prepare: line 2:1: no", "a.sql", "a.sql, line 5:1: Cannot prepare: no"),
        ("odd at line 1:1", "a.sql", "a.sql, line 4:6: odd"),
        ("odd at line 1:1 or so", "", "odd at line 4:6 or so"),
        ("gone", "a.sql", "a.sql, line 4: gone"),
        ("the file's line 77:1 is odd", "", "the file's line 77:1 is odd"),
    ],
)
def test_a_place_is_counted_from_the_start_of_what_the_user_wrote(
    message: str, script: str, expected: str
) -> None:
    statement = Statement("AB x\nCD;", line=4, column=6)
    shown_text = drawn(render_trouble(ServerFailure(40001, message), statement, script))
    assert shown_text.splitlines()[0] == expected
    assert "at line 2:1" not in shown_text


def test_a_connector_is_described_with_its_tasks_sources_and_topics():
    status = {
        "name": "names",
        "connector": {"state": "RUNNING", "worker_id": "h:8083", "trace": None},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "h:8083", "trace": "no room"}],
        "type": "source",
    }
    entity = ConnectorDescription(
        statement_text="",
        connector_class="FileStreamSource",
        status=status,
        sources=(SOURCE,),
        topics=("b-topic",),
    )
    lines = [" ".join(line.split()) for line in shown(entity).splitlines()]
    assert lines[:5] == [
        "Name names",
        "Class FileStreamSource",
        "Type source",
        "State RUNNING",
        "WorkerId h:8083",
    ]
    for line in ("0 FAILED no room", "B b-topic TABLE", "Related Topics", "b-topic"):
        assert line in lines


def test_connectors_are_listed_as_ksqldb_lists_them():
    listed = ConnectorList(
        statement_text="",
        connectors=(ConnectorInfo("c", "sink", "x.Sink", "WARNING (0/1 tasks RUNNING)"),),
    )
    assert shown(listed).split("\n")[2].split(maxsplit=3) == [
        "c",
        "SINK",
        "x.Sink",
        "WARNING (0/1 tasks RUNNING)",
    ]
    created = CreatedConnector("c", {}, (), "sink")
    assert "Created connector c" in shown(ConnectorInfoEntity(statement_text="", info=created))
    assert "Dropped connector c" in shown(DropConnector(statement_text="", connector_name="c"))
