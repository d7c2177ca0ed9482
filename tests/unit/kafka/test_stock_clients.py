"""Bytes of confluent-kafka's own serializers are read by ours, and the other way round."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.type.date_pb2 import Date

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.formats.schemas import inferred_columns, schema_for
from ksql.formats.table import serde_for
from ksql.kafka.registry_client import ConfluentRegistry, RegistrySettings
from tests.unit.formats import columns as c

VALUE = SerializationContext("t", MessageField.VALUE)
AVRO = """{"type": "record", "name": "R", "fields": [
  {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}"""
JSON = """{"title": "R", "type": "object", "properties": {
  "id": {"type": "integer"}, "name": {"type": "string"}}}"""
COLUMNS = (c.value("ID", model.BIGINT), c.value("NAME", model.STRING))


@pytest.fixture
def clients():
    """Confluent's registry in memory, and ours on top of the same."""
    stock = SchemaRegistryClient.new_client({"url": "mock://here"})
    ours = ConfluentRegistry(RegistrySettings("http://unused"))
    ours._client = stock
    return stock, ours


def test_avro(clients):
    stock, ours = clients
    data = AvroSerializer(stock, AVRO)({"id": 5, "name": None}, VALUE)
    columns, _ = inferred_columns(Format("AVRO"), "value", "t", ours)
    assert columns == COLUMNS
    serde = serde_for(Format("AVRO"), COLUMNS, "value", ours, "t-value")
    assert serde.decode(data) == (5, None)
    back = AvroDeserializer(stock)(serde.encode((6, "x")), VALUE)
    assert back == {"ID": 6, "NAME": "x"}


def test_json(clients):
    stock, ours = clients
    data = JSONSerializer(JSON, stock)({"id": 5, "name": "x"}, VALUE)
    assert inferred_columns(Format("JSON_SR"), "value", "t", ours)[0] == COLUMNS
    serde = serde_for(Format("JSON_SR"), COLUMNS, "value", ours, "t-value")
    assert serde.decode(data) == (5, "x")
    assert serde.decode(serde.encode((6, None))) == (6, None)


def test_protobuf(clients):
    stock, ours = clients
    data = ProtobufSerializer(Date, stock)(Date(year=2020, month=5), VALUE)
    format_ = Format("PROTOBUF")
    columns, _ = inferred_columns(format_, "value", "t", ours)
    assert [(column.name, column.type) for column in columns] == [
        ("YEAR", model.INTEGER),
        ("MONTH", model.INTEGER),
        ("DAY", model.INTEGER),
    ]
    serde = serde_for(format_, columns, "value", ours, "u-value")
    assert serde.decode(data) == (2020, 5, 0)
    lower = tuple(c.value(name, model.INTEGER) for name in ("year", "month", "day"))
    ours.register("v-value", schema_for(format_, lower, "value"))
    data = serde_for(format_, lower, "value", ours, "v-value").encode((2020, None, 7))
    assert ProtobufDeserializer(Date, {})(data, VALUE) == Date(year=2020, day=7)
