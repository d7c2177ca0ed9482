from __future__ import annotations

import json

import pytest

from ksql.core.errors import StatementError
from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.formats import schemas
from ksql.formats.schema_registry import MemoryRegistry, Reference, Schema, SchemaNotFound
from ksql.formats.schemas import check_given_schema, inferred_columns, look_up, schema_for
from tests.unit.formats import columns as c

PROTO = 'syntax = "proto3"; '


def record(**fields):
    listed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return {"type": "record", "name": "R", "fields": listed}


def columns_of(format_, side, schema, kind):
    registry = MemoryRegistry()
    text = schema if isinstance(schema, str) and kind == "PROTOBUF" else json.dumps(schema)
    registry.register(f"t-{side}", Schema(kind, text))
    columns, _ = inferred_columns(format_, side, "t", registry)
    return ", ".join(map(str, columns))


AVRO, PROTOBUF, JSON_SR = Format("AVRO"), Format("PROTOBUF"), Format("JSON_SR")

INFERRED = [
    (AVRO, "value", record(c1="int", C2="string"), "AVRO", "`C1` INTEGER, `C2` STRING"),
    (Format("AVRO", schema_id=1), "value", record(c1="int"), "AVRO", "`c1` INTEGER"),
    (
        Format("AVRO", schema_id=1),
        "value",
        record(c=record(d="int") | {"name": "I"}),
        "AVRO",
        "`c` STRUCT<`d` INTEGER>",
    ),
    (Format("AVRO", wrap=False), "value", "int", "AVRO", "`ROWVAL` INTEGER"),
    (AVRO, "key", "int", "AVRO", "`ROWKEY` INTEGER KEY"),
    (AVRO, "key", record(f="int"), "AVRO", "`ROWKEY` STRUCT<`F` INTEGER> KEY"),
    (PROTOBUF, "key", PROTO + "message K { int32 f = 1; }", "PROTOBUF", "`F` INTEGER KEY"),
    (PROTOBUF, "value", PROTO + "message M { uint32 a = 1; }", "PROTOBUF", "`A` BIGINT"),
    (
        Format("PROTOBUF", schema_full_name="B"),
        "value",
        PROTO + "message A { int32 a = 1; } message B { string b = 1; }",
        "PROTOBUF",
        "`B` STRING",
    ),
    (JSON_SR, "value", {"properties": {"a": {"type": "string"}}}, "JSON", "`A` STRING"),
    (JSON_SR, "key", {"type": "integer"}, "JSON", "`ROWKEY` BIGINT KEY"),
]


@pytest.mark.parametrize(("format_", "side", "schema", "kind", "expected"), INFERRED)
def test_inferred(format_, side, schema, kind, expected):
    assert columns_of(format_, side, schema, kind) == expected


@pytest.mark.parametrize(
    ("format_", "side", "schema", "kind", "message"),
    [
        (AVRO, "value", "int", "AVRO", "schema for topic: t is compatible"),
        (AVRO, "value", record(a=["null", "R"]), "AVRO", "Recursive schemas are not supported"),
        (
            PROTOBUF,
            "key",
            PROTO + "message K { int32 a = 1; int32 b = 2; }",
            "PROTOBUF",
            "contains multiple columns",
        ),
        (
            AVRO,
            "value",
            PROTO + "message A {}",
            "PROTOBUF",
            "You may want to set VALUE_FORMAT to 'PROTOBUF'",
        ),
        (
            PROTOBUF,
            "value",
            PROTO + "message A {} message B {}",
            "PROTOBUF",
            "multiple message definitions",
        ),
    ],
)
def test_not_inferred(format_, side, schema, kind, message):
    with pytest.raises(StatementError) as caught:
        columns_of(format_, side, schema, kind)
    assert message in caught.value.text()


def test_no_schema():
    registry = MemoryRegistry()
    with pytest.raises(
        StatementError,
        match=r"Schema for message values on topic 'x' does not exist in the Schema Registry\.",
    ):
        inferred_columns(AVRO, "value", "x", registry)
    with pytest.raises(StatementError) as caught:
        inferred_columns(Format("AVRO", schema_id=7), "value", "x", registry)
    assert "Subject: x-value\nSchema Id: 7" in caught.value.detail


def test_result_columns_against_a_given_schema():
    registry = MemoryRegistry()
    registry.register("a", Schema("AVRO", json.dumps(record(c1="int", c2="double"))))
    registry.register("b", Schema("AVRO", '"int"'))
    given = Format("AVRO", schema_id=1)
    schema = look_up(given, "value", "t", registry)
    c1, c2 = c.value("c1", model.INTEGER), c.value("c2", model.DOUBLE)
    check_given_schema(given, "value", (c1,), "t", schema)
    check_given_schema(given, "value", (c1, c2), "t", schema)
    for wrong, shown in (
        ((c.value("c1", model.STRING),), "`c1` STRING"),
        ((c2, c1), "`c2` DOUBLE, `c1` INTEGER"),
        ((c1, c2, c.value("c3", model.STRING)), "`c3` STRING"),
    ):
        with pytest.raises(StatementError) as caught:
            check_given_schema(given, "value", wrong, "t", schema)
        assert caught.value.message == (
            f"The following value columns are changed, missing or reordered: [{shown}]. "
            "Schema from schema registry is [`c1` INTEGER, `c2` DOUBLE]"
        )
    key = Format("AVRO", schema_id=2)
    schema = look_up(key, "key", "t", registry)
    check_given_schema(key, "key", (c.key("ANY", model.INTEGER),), "t", schema)
    with pytest.raises(StatementError):
        check_given_schema(key, "key", (c.key("ANY", model.STRING),), "t", schema)


@pytest.mark.parametrize(
    ("format_", "kind", "part"),
    [
        (AVRO, "AVRO", '"name":"KsqlDataSourceSchema"'),
        (PROTOBUF, "PROTOBUF", "message ConnectDefault1"),
        (JSON_SR, "JSON", '"connect.index":0'),
    ],
)
def test_registered_schemas(format_, kind, part):
    schema = schema_for(format_, (c.value("A", model.INTEGER),), "value")
    assert schema.kind == kind
    assert part in schema.text


def test_names_of_keys():
    named = schemas.key_schema_name("AVRO", "MY_STREAM")
    assert named == "io.confluent.ksql.avro_schemas.MyStreamKey"
    assert schemas.key_schema_name("PROTOBUF", "MY_STREAM") is None
    assert schemas.key_schema_name("KAFKA", "MY_STREAM") is None


def test_the_registry_in_memory():
    registry = MemoryRegistry()
    int_, string = Schema("AVRO", '"int"'), Schema("AVRO", '"string"')
    assert registry.register("a", int_) == 1
    assert registry.register("a", int_) == 1
    assert registry.register("b", int_) == 1
    assert registry.register("a", string, 77) == 77
    assert registry.register("c", Schema("AVRO", '"long"')) == 2
    assert registry.ids("a") == [1, 77]
    assert registry.subjects() == ["a", "b", "c"]
    latest = registry.latest("a")
    assert (latest.id, latest.version, latest.schema) == (77, 2, string)
    assert registry.version("a", 1).schema == int_
    registry.delete("a")
    assert registry.latest("a") is None
    assert registry.ids("a") == []
    for ask in (lambda: registry.version("a", 1), lambda: registry.by_id(5)):
        with pytest.raises(SchemaNotFound):
            ask()
    referring = Schema("AVRO", '"x"', (Reference("x", "b", 1),))
    assert referring.references[0].subject == "b"
