from __future__ import annotations

import pytest

from qtt import run
from qtt.model import CaseRecord, QueryTestCase, SchemaDef, Statement, Step, TopicDef
from qtt.topics import in_java_order, prepare


class Recorder:
    """A driver that writes down what it is told."""

    def __init__(self):
        self.topics, self.schemas, self.references = {}, [], []

    def create_topic(self, topic):
        self.topics[topic.name] = topic.partitions

    def refer(self, name, schema):
        self.references.append((name, schema.kind, schema.text))
        return name

    def register(self, topic, side, schema, schema_id):
        self.schemas.append((topic, side, schema.text, schema_id))


def prepared(*statements, topics=(), inputs=()):
    step = Step(tuple(Statement(s) for s in statements), tuple(inputs))
    recorder = Recorder()
    case = QueryTestCase(id="c", steps=(step,), outputs=(), topics=tuple(topics))
    prepare(case, recorder, run._settings(case), 4)
    return recorder


INT, TEXT = SchemaDef("AVRO", '"int"'), SchemaDef("AVRO", '"string"')


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["OUTPUT", "input"], ["input", "OUTPUT"]),
        (["BB", "Aa"], ["BB", "Aa"]),  # the same hash: as they came
        (["b", "a", "c"], ["a", "b", "c"]),
        ([f"t{i}" for i in range(13)], [f"t{i}" for i in (*range(4, 10), 10, 12, 11, 0, 1, 2, 3)]),
    ],
)
def test_java_order(names, expected):
    assert [
        topic.name for topic in in_java_order(TopicDef(name=name) for name in names)
    ] == expected


def test_the_first_of_a_name_counts():
    assert in_java_order([TopicDef(name="a", partitions=1), TopicDef(name="a", partitions=2)]) == [
        TopicDef(name="a", partitions=1)
    ]


def test_ids_are_counted_and_equal_schemas_have_one():
    schemas = prepared(
        topics=[
            TopicDef(name="a", key=INT, value=TEXT),
            TopicDef(name="b", key=SchemaDef("AVRO", '"long"', 7), value=INT),
        ]
    )
    assert schemas.schemas == [
        ("a", "key", '"int"', 1),
        ("a", "value", '"string"', 2),
        ("b", "key", '"long"', 7),
        ("b", "value", '"int"', 1),
    ]


def test_references_come_first_and_take_no_number():
    schema = SchemaDef("PROTOBUF", "m", None, (("e.proto", "PROTOBUF", "e"),))
    schemas = prepared(topics=[TopicDef(name="a", value=schema)])
    assert schemas.references == [("e.proto", "PROTOBUF", "e")]
    assert [each[3] for each in schemas.schemas] == [1]


def test_declared_columns_give_schemas():
    schemas = prepared(
        "CREATE STREAM A (K INT KEY, V INT) WITH (KAFKA_TOPIC='a', FORMAT='AVRO');"
        "CREATE STREAM B (V INT) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='JSON', PARTITIONS=2);"
        "CREATE STREAM C WITH (KAFKA_TOPIC='c', VALUE_FORMAT='AVRO');"
        "CREATE STREAM D (`1` INT) WITH (KAFKA_TOPIC='d', VALUE_FORMAT='AVRO');"
    )
    assert [each[:2] for each in schemas.schemas] == [("a", "key"), ("a", "value")]
    assert schemas.topics == {"a": 4, "b": 2, "d": 4}


def test_statements_that_are_refused_later_give_topics_without_schemas():
    schemas = prepared(
        "CREATE STREAM A (V INT) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='PROTOBUF', "
        "WRAP_SINGLE_VALUE=FALSE);"
        "CREATE STREAM B (M MAP<INT, INT>) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='AVRO');"
        "CREATE STREAM C (V INT) WITH (KAFKA_TOPIC='c', VALUE_FORMAT='AVRO'); SELECT FROM;"
    )
    assert schemas.topics == {"a": 4, "b": 4, "c": 4}
    assert [each[:2] for each in schemas.schemas] == [("c", "value")]


def test_listed_topics_win_but_for_the_statements_partitions():
    schemas = prepared(
        "CREATE STREAM A (V INT) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='AVRO', PARTITIONS=8);",
        topics=[TopicDef(name="a", value=INT)],
        inputs=[CaseRecord(topic="i", key=None, value=None, timestamp=0)],
    )
    assert schemas.topics == {"a": 8, "i": 4}
    assert [each[2] for each in schemas.schemas] == ['"int"']
