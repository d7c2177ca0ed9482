"""What statements make of the schema registry, and how they tell what it lacks."""

from __future__ import annotations

from pathlib import Path

from ksql.control.statements.execute import RequestFailed
from ksql.formats.schema_registry import MemoryRegistry, Schema
from ksql.sql.syntax.parser import split
from tests.unit.world import World

HERE = Path(__file__).parent
PROTO = 'syntax = "proto3"; '
SUBJECTS = {
    "rides-value": (
        "AVRO",
        '{"type":"record","name":"Ride","fields":[{"name":"bike","type":"string"},'
        '{"name":"metres","type":["null","int"],"default":null}]}',
    ),
    "rides-key": ("AVRO", '"long"'),
    "loops-value": (
        "AVRO",
        '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}',
    ),
    "several-value": ("PROTOBUF", PROTO + "message A { int32 a = 1; } message B { string b = 1; }"),
    "wide-key": ("PROTOBUF", PROTO + "message K { int32 a = 1; int32 b = 2; }"),
    "bare-value": ("JSON", '{"type":"integer"}'),
}


def columns(text: str) -> str:
    """The columns of X, or the error."""
    registry = MemoryRegistry()
    for number, (subject, (kind, schema)) in enumerate(SUBJECTS.items(), 1):
        registry.register(subject, Schema(kind, schema), number)
    world = World(registry=registry)
    for topic in ("rides", "nothing", "loops", "several", "wide", "bare"):
        world.topic(topic)
    try:
        for each in split(text):
            world.run(each.text)
    except RequestFailed as failed:
        return failed.error.text()
    return str(world.catalog.sources["X"].schema)


def test_registry(golden):
    golden(HERE / "registry.sql", columns)
