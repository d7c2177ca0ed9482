"""A service with its own schema registry, and stock producers and consumers beside it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import StringSerializer
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.kafka.records import create_topic, topics, unique
from tests.kafka.servers import Hosted
from tests.unit.registry.memorylog import MemoryLog
from tests.waits import PATIENCE_S, await_true

AVRO = """{"type": "record", "name": "Ride", "fields": [
  {"name": "bike", "type": "string"}, {"name": "metres", "type": "int"}]}"""
JSON = """{"title": "Ride", "type": "object", "properties": {
  "bike": {"type": "string"}, "metres": {"type": "integer"}}}"""
RIDES = [("b7", 1200), ("b9", 640), ("b7", 300)]


def _messages(*fields: str) -> Any:
    """A message of a text and a number."""
    file = FileDescriptorProto(name="ride.proto", syntax="proto3")
    message = file.message_type.add(name="Ride")
    for number, (name, type_) in enumerate(zip(fields, (9, 5), strict=True), 1):
        message.field.add(name=name, number=number, type=type_, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Ride"))


def url_of(http) -> str:
    properties = http.one("SHOW PROPERTIES;")["properties"]
    (url,) = [p["value"] for p in properties if p["name"] == "ksql.schema.registry.url"]
    return str(url)


def send(bootstrap: str, topic: str, serializer: Any, values: list[Any]) -> None:
    """What a user's own producer does."""
    if topic not in topics(bootstrap):
        create_topic(bootstrap, topic)
    producer = SerializingProducer(
        {
            "bootstrap.servers": bootstrap,
            "key.serializer": StringSerializer(),
            "value.serializer": serializer,
        }
    )
    for value in values:
        producer.produce(topic, key="k", value=value)
    assert producer.flush(PATIENCE_S) == 0


def receive(bootstrap: str, topic: str, deserializer: Any, count: int) -> list[Any]:
    """What a user's own consumer does."""
    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "value.deserializer": deserializer,
        }
    )
    consumer.subscribe([topic])
    messages: list[Any] = []
    try:
        await_true(
            f"{count} records in {topic}",
            lambda: len(_polled(consumer, messages)) >= count,
        )
    finally:
        consumer.close()
    return messages


def _polled(consumer: Any, messages: list[Any]) -> list[Any]:
    message = consumer.poll(0.5)
    if message is not None and message.error() is None:
        messages.append(message.value())
    return messages


@pytest.fixture
def client(http):
    registry = SchemaRegistryClient({"url": url_of(http)})
    yield registry
    registry.close()


@pytest.mark.parametrize("format_", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_stock_clients_on_both_ends(server, http, client, format_):
    topic, sink = unique("rides"), unique("big").upper()
    dicts = [{"bike": bike, "metres": metres} for bike, metres in RIDES]
    ride = _messages("bike", "metres")
    sent: dict[str, tuple[Any, list[Any]]] = {
        "AVRO": (AvroSerializer(client, AVRO), dicts),
        "JSON_SR": (JSONSerializer(JSON, client), dicts),
        "PROTOBUF": (ProtobufSerializer(ride, client), [ride(**one) for one in dicts]),
    }
    send(server.bootstrap, topic, *sent[format_])
    http.ksql(
        f"CREATE STREAM {topic} WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='{format_}',"
        " KEY_FORMAT='NONE');"
        f"CREATE STREAM {sink} AS SELECT BIKE, METRES FROM {topic} WHERE METRES > 500;"
    )
    read: dict[str, Any] = {
        "AVRO": AvroDeserializer(client),
        "JSON_SR": JSONDeserializer(None, schema_registry_client=client),
        "PROTOBUF": ProtobufDeserializer(
            _messages("BIKE", "METRES"), schema_registry_client=client
        ),
    }
    messages = receive(server.bootstrap, sink, read[format_], 2)
    if format_ == "PROTOBUF":
        messages = [{"BIKE": one.BIKE, "METRES": one.METRES} for one in messages]
    assert messages == [{"BIKE": "b7", "METRES": 1200}, {"BIKE": "b9", "METRES": 640}]
    assert client.get_latest_version(f"{sink}-value").version == 1
    assert http.one(f"ASSERT SCHEMA SUBJECT '{sink}-value';")["@type"] == "assert_schema"
    body = http.refused(f"ASSERT NOT EXISTS SCHEMA SUBJECT '{sink}-value' TIMEOUT 1 MILLISECONDS;")
    assert (body["error_code"], body["@type"]) == (41700, "statement_error")


def test_subjects_and_the_address_outlive_a_restart(broker, runtime, tmp_path):
    service_id = unique("svc") + "_"
    answers = []
    for _ in range(2):
        hosted = Hosted(broker.bootstrap, runtime, tmp_path, service_id)
        try:
            url = url_of(hosted.start())
            assert hosted.service.addresses() == {"schema registry": url}
            client = SchemaRegistryClient({"url": url})
            answers.append((url, client.get_subjects()))
            client.register_schema("kept", Schema(AVRO, "AVRO"))
            client.close()
        finally:
            hosted.stop()
    assert answers[0] == (answers[1][0], [])
    assert answers[1][1] == ["kept"]


def test_a_registry_that_is_down_stops_new_statements_only(broker, runtime, tmp_path):
    store = SchemaStore(MemoryLog())
    elsewhere = RegistryServer(Subjects(store), "127.0.0.1", 0, tmp_path / "port")
    url = elsewhere.start()
    topic, sink = unique("rides"), unique("copy").upper()
    hosted = Hosted(
        broker.bootstrap,
        runtime,
        tmp_path / "state",
        unique("svc") + "_",
        ksql__schema__registry__url=url,
    )
    client = SchemaRegistryClient({"url": url})
    try:
        http = hosted.start()
        writer = AvroSerializer(client, AVRO)
        send(broker.bootstrap, topic, writer, [{"bike": "b1", "metres": 1}])
        create = f"CREATE STREAM {topic} WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='AVRO');"
        http.ksql(f"{create} CREATE STREAM {sink} AS SELECT * FROM {topic};")
        reader = AvroDeserializer(client)
        assert len(receive(broker.bootstrap, sink, reader, 1)) == 1
        elsewhere.stop()
        body = http.refused(create.replace(f"STREAM {topic}", "STREAM OTHER"))
        assert (body["@type"], body["error_code"]) == ("statement_error", 40001)
        assert f"the schema registry at {url} cannot be reached" in body["message"]
        send(broker.bootstrap, topic, writer, [{"bike": "b2", "metres": 2}])
        messages = receive(broker.bootstrap, sink, reader, 2)
        assert [one["BIKE"] for one in messages] == ["b1", "b2"]
    finally:
        client.close()
        hosted.stop()
        elsewhere.stop()
        store.close()
