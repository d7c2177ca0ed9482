"""Results with registered schemas get columns; EXPLAIN asks the registry as the statement does."""

from __future__ import annotations

import json

import pytest

from ksql.formats.json_sr.schema import opened
from ksql.formats.schema_registry import Schema, SchemaRejected
from ksql.kafka.registry_client import ConfluentRegistry, RegistrySettings
from ksql.registry.local import LocalRegistry
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.memorylog import MemoryLog
from tests.unit.world import World

SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
FORMATS = ("AVRO", "PROTOBUF", "JSON_SR")


@pytest.fixture
def subjects():
    store = SchemaStore(MemoryLog())
    yield Subjects(store)
    store.close()


@pytest.fixture(params=["in process", "by HTTP"])
def registry(request, subjects, tmp_path):
    """The embedded registry, also as a remote one is asked."""
    if request.param == "in process":
        yield LocalRegistry(subjects)
        return
    server = RegistryServer(subjects, "127.0.0.1", 0, tmp_path / "port")
    client = ConfluentRegistry(RegistrySettings(server.start()))
    with client._client:
        yield client
    server.stop()


def text(columns, format_, verb="CREATE OR REPLACE"):
    return f"{verb} STREAM U WITH (VALUE_FORMAT='{format_}') AS SELECT {columns} FROM S;"


@pytest.mark.parametrize("format_", FORMATS)
def test_a_result_gets_a_column_by_default(registry, format_):
    world = World(SOURCE, text("K, A", format_, "CREATE"), registry=registry)
    world.feed("s", ("k", {"A": 1, "B": "x"}, 1))
    world.run("EXPLAIN " + text("K, A, B", format_))
    assert len(registry.ids("U-value")) == 1
    [entity] = world.run(text("K, A, B", format_))
    assert entity.upgrade.classes == ("schema evolution",)
    assert len(registry.ids("U-value")) == 2
    world.feed("s", ("l", {"A": 2, "B": "y"}, 2))
    world.run("CREATE STREAM V WITH (VALUE_FORMAT='JSON') AS SELECT * FROM U;")
    world.drain()
    assert world.last("V") == {"k": {"A": 1, "B": None}, "l": {"A": 2, "B": "y"}}


@pytest.mark.parametrize("format_", FORMATS)
def test_explain_and_the_statement_refuse_alike(registry, format_):
    world = World(SOURCE, text("K, A", format_, "CREATE"), registry=registry)
    theirs = World(
        SOURCE.replace("A BIGINT, B STRING", "A BIGINT, B INT").replace("STREAM S", "STREAM O"),
        registry=registry,
    )
    theirs.run(text("K, A, B", format_, "CREATE").replace("FROM S", "FROM O"))
    for statement in ("EXPLAIN " + text("K, A, B", format_), text("K, A, B", format_)):
        with pytest.raises(Exception, match="Could not register schema for subject: U-value"):
            world.run(statement)
    assert len(registry.ids("U-value")) == 2


def as_before(registry, subject):
    """The subject as a version that left rows open has registered it."""
    schema = registry.latest(subject).schema
    registry.delete(subject)
    registry.register(subject, Schema(schema.kind, opened(schema.text)))


def test_a_result_of_an_earlier_version_stays_as_it_is(registry):
    """Its schema is open: closing it would be refused, so it goes on and does not grow."""
    world = World(SOURCE, text("K, A", "JSON_SR", "CREATE"), registry=registry)
    as_before(registry, "U-value")
    text_then = registry.latest("U-value").schema.text
    assert "additionalProperties" not in json.loads(text_then)
    world.feed("s", ("k", {"A": 1, "B": "x"}, 1))
    world.run(text("K, A", "JSON_SR"))
    world.run("EXPLAIN " + text("K, A", "JSON_SR"))
    world.feed("s", ("l", {"A": 2, "B": "y"}, 2))
    assert registry.latest("U-value").schema.text == text_then
    assert len(world.topics.records["U"]) == 2
    with pytest.raises(Exception, match="Could not register schema for subject: U-value"):
        world.run("EXPLAIN " + text("K, A, B", "JSON_SR"))


def test_unreadable_schema_is_not_open(registry):
    registry.register("s", Schema("AVRO", '"int"'))
    registry.check("s", Schema("AVRO", '"int"'))
    registry.check("unknown", Schema("AVRO", '"int"'))
    with pytest.raises(SchemaRejected, match="Could not register schema for subject: s"):
        registry.check("s", Schema("AVRO", '"string"'))
    with pytest.raises(SchemaRejected, match="Could not register schema for subject: s"):
        registry.check("s", Schema("AVRO", "{"))
