"""confluent-kafka's own client, serializers and deserializers against the embedded registry."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.schema_registry_client import (
    ConfigCompatibilityLevel,
    ServerConfig,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api.auth_pb2 import AuthProvider
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ksql.core.types.format import Format
from ksql.formats.schemas import inferred_columns
from ksql.kafka.registry_client import ConfluentRegistry, RegistrySettings
from ksql.registry.local import LocalRegistry
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.memorylog import MemoryLog

VALUE = SerializationContext("t", MessageField.VALUE)
AVRO = """{"type": "record", "name": "R", "fields": [
  {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}"""
JSON = """{"title": "R", "type": "object", "properties": {
  "id": {"type": "integer"}, "name": {"type": "string"}}}"""


@pytest.fixture
def embedded(tmp_path):
    """The registry in process, and the URL where others find it."""
    store = SchemaStore(MemoryLog())
    subjects = Subjects(store)
    server = RegistryServer(subjects, "127.0.0.1", 0, tmp_path / "port")
    yield LocalRegistry(subjects), server.start()
    server.stop()
    store.close()


@pytest.fixture
def fresh(embedded):
    """Makes clients that have not seen anything yet."""
    registries = []

    def make():
        registries.append(SchemaRegistryClient({"url": embedded[1]}))
        return registries[-1]

    yield make
    for client in registries:
        client.close()


@pytest.fixture
def stock(fresh):
    return fresh()


def columns(format_, registry, topic="t"):
    columns_, _ = inferred_columns(Format(format_), "value", topic, registry)
    return [(column.name, str(column.type)) for column in columns_]


def test_avro(embedded, stock, fresh):
    data = AvroSerializer(stock, AVRO)({"id": 5, "name": None}, VALUE)
    assert AvroDeserializer(fresh())(data, VALUE) == {"id": 5, "name": None}
    assert columns("AVRO", embedded[0]) == [("ID", "BIGINT"), ("NAME", "STRING")]
    wider = json.loads(AVRO)
    wider["fields"].append({"name": "x", "type": "int", "default": 7})
    newer = AvroSerializer(stock, json.dumps(wider))
    newer({"id": 6, "name": "n"}, VALUE)
    reading = AvroDeserializer(fresh(), json.dumps(wider))
    assert reading(data, VALUE) == {"id": 5, "name": None, "x": 7}
    wider["fields"].append({"name": "y", "type": "int"})
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as caught:
        AvroSerializer(stock, json.dumps(wider))({"id": 6, "name": "n", "y": 1}, VALUE)
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)


def test_avro_with_a_reference(embedded, stock, fresh):
    inner = Schema('{"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}]}')
    stock.register_schema("inner", inner)
    outer = Schema(
        '{"type": "record", "name": "O", "fields": [{"name": "i", "type": "I"}]}',
        "AVRO",
        [SchemaReference("I", "inner", 1)],
    )
    data = AvroSerializer(stock, outer)({"i": {"n": 3}}, VALUE)
    assert AvroDeserializer(fresh())(data, VALUE) == {"i": {"n": 3}}
    assert columns("AVRO", embedded[0]) == [("I", "STRUCT<`N` INTEGER>")]


def test_json(embedded, stock, fresh):
    data = JSONSerializer(JSON, stock)({"id": 5, "name": "x"}, VALUE)
    reading = JSONDeserializer(None, schema_registry_client=fresh())
    assert reading(data, VALUE) == {"id": 5, "name": "x"}
    assert columns("JSON_SR", embedded[0]) == [("ID", "BIGINT"), ("NAME", "STRING")]


def test_protobuf(embedded, stock, fresh):
    kind = _messages().inner
    data = ProtobufSerializer(kind, stock)(kind(x=5), VALUE)
    reading = ProtobufDeserializer(kind, schema_registry_client=fresh())
    assert reading(data, VALUE) == kind(x=5)
    assert columns("PROTOBUF", embedded[0]) == [("X", "INTEGER")]


class Messages(NamedTuple):
    inner: Any
    outer: Any


def _messages():
    pool = descriptor_pool.DescriptorPool()
    inner = FileDescriptorProto(name="dir/inner.proto", package="p", syntax="proto3")
    inner.message_type.add(name="Inner").field.add(name="x", number=1, type=5, label=1)
    outer = FileDescriptorProto(
        name="outer.proto", package="p", syntax="proto3", dependency=["dir/inner.proto"]
    )
    outer.message_type.add(name="Outer").field.add(
        name="inner", number=1, type=11, label=1, type_name=".p.Inner"
    )
    for file in (inner, outer):
        pool.Add(file)
    classes = (pool.FindMessageTypeByName(name) for name in ("p.Inner", "p.Outer"))
    return Messages(*map(message_factory.GetMessageClass, classes))


def test_protobuf_with_an_import(embedded, stock, fresh):
    outer = _messages().outer
    message = outer(inner={"x": 7})
    data = ProtobufSerializer(outer, stock)(message, VALUE)
    assert "dir/inner.proto" in stock.get_subjects()
    reading = ProtobufDeserializer(outer, schema_registry_client=fresh())
    assert reading(data, VALUE) == message
    assert columns("PROTOBUF", embedded[0]) == [("INNER", "STRUCT<`X` INTEGER>")]
    (schema_id,) = embedded[0].ids("t-value")
    assert 'import "dir/inner.proto";' in embedded[0].by_id(schema_id).text
    (referring,) = stock.get_referenced_by("dir/inner.proto", 1)
    assert referring == schema_id


def test_options_that_a_descriptor_carries_are_not_lost(embedded, stock, fresh):
    message = AuthProvider(id="x")
    data = ProtobufSerializer(AuthProvider, stock)(message, VALUE)
    reading = ProtobufDeserializer(AuthProvider, schema_registry_client=fresh())
    assert reading(data, VALUE) == message


def test_the_clients_own_methods(embedded, stock, fresh):
    schema = Schema(AVRO, "AVRO")
    id_ = stock.register_schema("s", schema)
    assert fresh().register_schema("s", schema, normalize_schemas=True) == id_
    full = fresh().register_schema_full_response("s", schema)
    assert (full.schema_id, full.version, full.subject) == (id_, 1, "s")
    assert fresh().get_schema(id_).schema_type == "AVRO"
    assert fresh().get_schema_by_guid(full.guid).schema_str == full.schema.schema_str
    assert fresh().lookup_schema("s", schema).version == 1
    assert stock.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]
    assert stock.get_subjects_by_schema_id(id_) == ["s"]
    assert [(v.subject, v.version) for v in stock.get_schema_versions(id_)] == [("s", 1)]
    assert stock.get_latest_version("s").version == 1
    assert stock.get_version("s", 1).schema_id == id_
    assert stock.get_versions("s") == [1]
    assert stock.test_compatibility("s", schema)
    assert stock.test_compatibility_all_versions("s", schema)
    assert stock.get_compatibility() == "BACKWARD"
    stock.set_compatibility("s", "full")
    assert stock.get_compatibility("s") == "FULL"
    stock.set_config("s", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert stock.get_config("s").compatibility_level == ConfigCompatibilityLevel.NONE
    stock.delete_config("s")
    stock.update_mode("s", "READONLY")
    assert stock.get_mode("s") == "READONLY"
    stock.delete_mode("s")
    assert stock.get_global_mode() == "READWRITE"
    assert stock.get_contexts() == ["."]
    assert stock.delete_version("s", 1) == 1
    stock.register_schema("s", schema)
    assert stock.delete_subject("s") == [2]
    assert stock.delete_subject("s", permanent=True) == [1, 2]


def test_our_own_client(embedded):
    ours = ConfluentRegistry(RegistrySettings(embedded[1]))
    local = embedded[0]
    from ksql.formats.schema_registry import Schema as Ours  # noqa: PLC0415 - two classes of one name

    schema = Ours("JSON", '{"type":"string"}')
    id_ = ours.register("s", schema)
    assert (local.by_id(id_), ours.by_id(id_)) == (schema, schema)
    assert ours.latest("s") == local.latest("s")
    assert (ours.ids("s"), ours.subjects()) == ([id_], ["s"])
    local.delete("s")
    assert ours.latest("s") is None
    ours._client.close()
