from __future__ import annotations

import json

import pytest

from qtt import tokens
from qtt.local import LocalDrivers
from qtt.model import CaseRecord, QueryTestCase, Statement, Step
from qtt.run import run

STATEMENTS = (
    "CREATE STREAM a (k INT KEY, v INT) WITH (KAFKA_TOPIC='a', FORMAT='AVRO');"
    "CREATE STREAM b WITH (VALUE_FORMAT='PROTOBUF', "
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION='OPTIONAL') AS SELECT * FROM a;"
)
B = {
    "name": "B",
    "partitions": 4,
    "keyFormat": {
        "format": "AVRO",
        "features": ["UNWRAP_SINGLES"],
        "properties": {"fullSchemaName": "io.confluent.ksql.avro_schemas.BKey"},
    },
    "keySchema": '"int"',
    "valueFormat": {
        "format": "PROTOBUF",
        "properties": {"unwrapPrimitives": "true", "nullableRepresentation": "optional"},
    },
    "valueSchema": 'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  optional int32 V = 1;\n}\n',
}


def result(*topics):
    post = tokens.parse(json.dumps({"topics": {"topics": topics, "blacklist": ".*-repartition"}}))
    step = Step(
        (Statement(STATEMENTS),), (CaseRecord(topic="a", key=None, value=None, timestamp=0),)
    )
    return run(QueryTestCase(id="c", steps=(step,), outputs=(), post=post), LocalDrivers())


def test_topics_are_as_they_are_said_to_be():
    outcome = result(B)
    assert (outcome.status, outcome.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"partitions": 5}, "partitions"),
        ({"keyFormat": {"format": "AVRO"}}, "keyFormat"),
        ({"keySchema": '"long"'}, "keySchema"),
        ({"valueFormat": {"format": "PROTOBUF"}}, "valueFormat"),
        ({"valueSchema": "message X {}"}, "valueSchema"),
        ({"valueSchemaId": 7}, "valueSchemaId"),
    ],
)
def test_each_fact_counts(change, fact):
    outcome = result(B | change)
    assert outcome.status == "failed"
    assert outcome.reason.startswith(f"topic B: {fact} ")


def test_topics_that_are_not_there():
    assert "there is no topic C" in result({"name": "C"}).reason
    inner = {"name": "_confluent-ksql-x-Aggregate-changelog"}
    outcome = result(inner, B)
    assert (outcome.status, inner["name"] in outcome.reason) == ("failed", True)
    assert result(inner, B | {"partitions": 5}).reason.startswith("topic B: partitions ")
