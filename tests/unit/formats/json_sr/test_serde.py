from __future__ import annotations

import json
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given, settings

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.formats.connect import NotInferable, sql_type
from ksql.formats.json_sr.schema import BrokenJsonSchema, connect_type
from ksql.formats.schema_registry import MemoryRegistry, Schema, framed
from ksql.formats.schemas import schema_for, topic_serde
from ksql.formats.table import SKIP, DecodeError, serde_for
from tests.examples import examples
from tests.unit.formats import columns as c

D = Decimal
INT, BIGINT, DOUBLE, STRING = model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING
DEC = model.Decimal(6, 2)
INT32 = {"type": "integer", "connect.type": "int32"}
DOUBLES = {"type": "number"}
CONNECT = "org.apache.kafka.connect.data"
NUMBER = {
    "type": "number",
    "title": f"{CONNECT}.Decimal",
    "connect.type": "bytes",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
}


def null_or(schema):
    return {"oneOf": [{"type": "null"}, schema]}


def members(**properties):
    return {"type": "object", "properties": properties}


def reads(schema, text, *columns, wrapped=True):
    registry = MemoryRegistry()
    chosen = registry.register("other", Schema("JSON", json.dumps(schema)))
    wrap = None if wrapped else False
    serde = serde_for(Format("JSON_SR", wrap=wrap), columns, "value", registry, "s")
    return serde.decode(framed(chosen) + text.encode())


READ = [
    ({"type": "boolean"}, "true", model.BOOLEAN, True),
    (INT32, "5", INT, 5),
    (INT32, "5", BIGINT, 5),
    ({"type": "integer"}, "5", BIGINT, 5),
    (DOUBLES, "1.5", DOUBLE, 1.5),
    ({"type": "string"}, '"x"', STRING, "x"),
    (INT32, "5", STRING, "5"),
    (DOUBLES, "10000000000", STRING, "1.0E10"),
    ({"type": "boolean"}, "true", STRING, "true"),
    ({"type": "array", "items": DOUBLES}, "[1e10, null]", Array(STRING), ["1.0E10", None]),
    (
        {"type": "object", "additionalProperties": DOUBLES},
        '{"a": 1, "b": null}',
        Map(STRING, STRING),
        {"a": "1.0", "b": None},
    ),
    (
        members(a=DOUBLES, b=INT32),
        '{"a": 1, "b": 2, "C": 3}',
        Struct((Field("A", STRING), Field("B", INT), Field("C", INT))),
        {"A": "1.0", "B": 2, "C": None},
    ),
    (
        {
            "type": "array",
            "connect.type": "map",
            "items": members(key=null_or(INT32), value=null_or(DOUBLES)),
        },
        '[{"key": 7, "value": 1.5}, {"value": null, "key": -1}]',
        Map(STRING, STRING),
        {"7": "1.5", "-1": None},
    ),
    (NUMBER, "1.5", DEC, D("1.50")),
    ({"type": "string", "connect.type": "bytes"}, '"AQI="', model.BYTES, b"\1\2"),
    ({"type": "integer", "title": f"{CONNECT}.Date"}, "5", model.DATE, 5),
    (null_or(INT32), "null", INT, None),
]


@pytest.mark.parametrize(("schema", "text", "type_", "expected"), READ)
def test_reads(schema, text, type_, expected):
    column = c.value("V", type_)
    assert c.same(reads(members(v=schema), f'{{"v": {text}}}', column), (expected,))
    assert c.same(reads(schema, text, column, wrapped=False), (expected,))
    assert reads(members(v=schema), "null", column) is None
    assert reads(members(v=schema), "{}", column) == (None,)


ONE_OF = "io.confluent.connect.json.OneOf.field."
CHOICE = {
    "anyOf": [
        {"type": "null"},
        {"type": "integer"},
        {"type": "string"},
        {"type": "array", "items": DOUBLES},
        members(a=INT32, b=INT32),
        members(b=INT32, c=INT32, d=INT32),
        {},
    ]
}
CHOSEN = Struct(
    (
        Field(f"{ONE_OF}0".upper(), BIGINT),
        Field(f"{ONE_OF}1".upper(), STRING),
        Field(f"{ONE_OF}2".upper(), Array(STRING)),
        Field(f"{ONE_OF}3".upper(), Struct((Field("A", STRING),))),
        Field(f"{ONE_OF}4".upper(), Struct((Field("C", INT),))),
    )
)


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("5", 0, 5),
        ('"x"', 1, "x"),
        ("[1, null]", 2, ["1.0", None]),
        ('{"a": 1}', 3, {"A": "1"}),
        ('{"b": 1}', 3, {"A": None}),
        ('{"b": 1, "c": 2}', 4, {"C": 2}),
        ('{"z": 1}', 3, {"A": None}),
    ],
)
def test_a_value_of_one_of_several_types_is_a_struct_with_a_member_for_each(text, index, expected):
    names = [field.name for field in CHOSEN.fields]
    decoded = {name: expected if at == index else None for at, name in enumerate(names)}
    row = reads(members(v=CHOICE), f'{{"v": {text}}}', c.value("V", CHOSEN))
    assert row == (decoded,)
    assert reads(CHOICE, text, c.value("V", CHOSEN), wrapped=False) == (decoded,)


def test_a_value_of_none_of_the_types():
    with pytest.raises(
        DecodeError, match=r"Did not find matching oneof field for data: true, path: \$\.v"
    ):
        reads(members(v=CHOICE), '{"v": true}', c.value("V", CHOSEN))
    assert reads(members(v=CHOICE), '{"v": null}', c.value("V", CHOSEN)) == (None,)


def test_the_types_of_a_choice_that_are_not_declared_are_distinguished_too():
    only = Struct((Field(f"{ONE_OF}1".upper(), STRING), Field("OTHER", INT)))
    read = partial(reads, members(v=CHOICE))
    assert read('{"v": "x"}', c.value("V", only)) == ({only.fields[0].name: "x", "OTHER": None},)
    assert read('{"v": 5}', c.value("V", only)) == ({only.fields[0].name: None, "OTHER": None},)


def test_a_choice_is_written_as_the_member_that_is_there():
    registry = MemoryRegistry()
    text = members(v=CHOICE, w={"type": "array", "items": CHOICE}, x=INT32)
    chosen = registry.register("x", Schema("JSON", json.dumps(text)))
    names = [field.name for field in CHOSEN.fields]
    nothing = dict.fromkeys(names)
    columns = (c.value("v", CHOSEN), c.value("w", Array(CHOSEN)), c.value("x", INT))
    serde = serde_for(Format("JSON_SR", schema_id=chosen), columns, "value", registry, "s")
    items = [{**nothing, names[1]: "x"}, {**nothing, names[3]: {"A": "1"}}, nothing, None]
    written = serde.encode(({**nothing, names[0]: 5}, items, 7))
    assert written == framed(chosen) + b'{"v":5,"w":["x",{"A":"1"},null,null],"x":7}'
    assert serde.decode(framed(chosen) + b'{"v":5,"w":["x",{"a":1}],"x":7}') == (
        {**nothing, names[0]: 5},
        items[:2],
        7,
    )


def test_a_choice_as_a_type():
    type_ = connect_type(json.dumps({"oneOf": [{"type": "string"}, DOUBLES]}))
    assert sql_type(type_, upper=False) == Struct(
        (Field(f"{ONE_OF}0", STRING), Field(f"{ONE_OF}1", DOUBLE))
    )


def test_members_are_those_of_the_schema_in_any_case():
    columns = (c.value("x", INT), c.value("Y", STRING), c.value("Z", INT))
    schema = members(X=INT32, y=INT32)
    assert reads(schema, '{"X": 1, "y": 2, "Z": 3}', *columns) == (1, "2", None)
    assert reads(schema, '{"Z": 3}', *columns) == (None, None, None)
    inner = Struct((Field("x", INT), Field("Z", INT)))
    assert reads(members(V=schema), '{"V": {"X": 1, "Z": 3}}', c.value("v", inner)) == (
        {"x": 1, "Z": None},
    )


@pytest.mark.parametrize(
    ("schema", "type_", "path", "message"),
    [
        ({"type": "integer"}, INT, "$.V", "Cannot deserialize type INT64 as type INTEGER"),
        (INT32, DOUBLE, "$.V", "type INT32 as type DOUBLE"),
        ({"type": "string"}, INT, "$.V", "type STRING as type INTEGER"),
        ({"type": "array", "items": DOUBLES}, Array(INT), "$.V[]", "FLOAT64 as type INTEGER"),
        (members(a=DOUBLES), STRING, "$.V", "STRUCT as type STRING"),
        (members(a=DOUBLES), Struct((Field("A", INT),)), "$.V.A", "FLOAT64 as type INTEGER"),
        (NUMBER, DOUBLE, "$.V", "DECIMAL as type DOUBLE"),
    ],
)
def test_mismatches_of_schema_and_columns(schema, type_, path, message):
    with pytest.raises(DecodeError, match=message) as caught:
        reads(members(V=schema), '{"V": null}', c.value("V", type_))
    assert caught.value.path == path


def test_written_documents():
    registry = MemoryRegistry()
    columns = (c.value("FOO", INT), c.value("D", DEC))
    serde = serde_for(Format("JSON_SR"), columns, "value", registry, "t-value")
    assert serde.encode_many([(1, None), None]) == [framed(1) + b'{"FOO":1,"D":null}', None]
    title = {"title": f"{CONNECT}.Decimal", "connect.version": 1}
    params = {"scale": "2", "connect.decimal.precision": "6"}
    number = {"type": "number", **title, "connect.type": "bytes", "connect.parameters": params}
    assert json.loads(registry.latest("t-value").schema.text) == {
        "type": "object",
        "properties": {
            "FOO": {"connect.index": 0, **null_or(INT32)},
            "D": {"connect.index": 1, **null_or(number)},
        },
        "additionalProperties": False,
    }
    keys = serde_for(Format("JSON_SR"), (c.key("K", INT),), "key", registry, "t-key")
    assert keys.encode_many([(1,), (None,)]) == [framed(2) + b"1", None]
    assert json.loads(registry.latest("t-key").schema.text) == null_or(INT32)


def test_the_name_of_a_schema_is_its_title():
    registry, columns = MemoryRegistry(), (c.value("A", model.BOOLEAN),)
    format_ = Format("JSON_SR", schema_full_name="bikes.Ride")
    assert serde_for(format_, columns, "value", registry, "t-value").encode((True,))
    schema = registry.latest("t-value").schema
    assert json.loads(schema.text) == {
        "type": "object",
        "title": "bikes.Ride",
        "properties": {"A": {"connect.index": 0, **null_or({"type": "boolean"})}},
        "additionalProperties": False,
    }
    assert schema_for(format_, columns, "value") == schema


def test_plain_json_gets_a_hint():
    serde = serde_for(Format("JSON_SR"), (c.value("V", INT),), "value", MemoryRegistry(), "s")
    failures = c.Failures()
    assert serde.decode_many([b'{"V": 1}', None], failures) == [SKIP, None]
    assert "use the JSON format" in failures[0][1]


REF = {"$ref": "#/$defs/point"}
POINT = {"$defs": {"point": members(x=INT32)}}

TYPES = [
    (
        {**members(p=REF, q=REF), **POINT},
        "STRUCT<`P` STRUCT<`X` INTEGER>, `Q` STRUCT<`X` INTEGER>>",
    ),
    ({"type": ["null", "string"]}, "STRING"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "BIGINT"),
    ({"allOf": [members(a=INT32), members(b=DOUBLES)]}, "STRUCT<`A` INTEGER, `B` DOUBLE>"),
    ({"enum": ["a", "b"]}, "STRING"),
    ({"const": "a"}, "STRING"),
    ({"properties": {"a": {"type": "string"}}}, "STRUCT<`A` STRING>"),
    ({"type": "number", "connect.type": "float32"}, "DOUBLE"),
    ({"type": "number", "connect.type": "int16"}, "INTEGER"),
    (
        {
            "type": "array",
            "connect.type": "map",
            "items": members(key={"type": "string"}, value=INT32),
        },
        "MAP<STRING, INTEGER>",
    ),
    (
        members(b={"connect.index": 1, **INT32}, a={"connect.index": 0, **INT32}),
        "STRUCT<`A` INTEGER, `B` INTEGER>",
    ),
    ({"type": "object"}, "STRUCT<>"),
]


@pytest.mark.parametrize(("schema", "expected"), TYPES)
def test_schemas_as_types(schema, expected):
    assert str(sql_type(connect_type(json.dumps(schema)))) == expected


def test_references_to_other_subjects():
    imported = {"point.json": json.dumps({**members(p={"$ref": "#/$defs/point"}), **POINT})}
    text = json.dumps(members(o={"$ref": "point.json"}, q={"$ref": "point.json#/$defs/point"}))
    assert str(sql_type(connect_type(text, imported))) == (
        "STRUCT<`O` STRUCT<`P` STRUCT<`X` INTEGER>>, `Q` STRUCT<`X` INTEGER>>"
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (members(a={"$ref": "#"}), "Recursive"),
        (members(a={}), "without a type"),
        ({"allOf": [INT32, DOUBLES]}, "allOf"),
        ({"type": "null"}, "type null"),
    ],
)
def test_schemas_without_a_type(schema, reason):
    with pytest.raises(NotInferable, match=reason):
        sql_type(connect_type(json.dumps(schema)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "1",
        '{"$ref": "#/nowhere"}',
        '{"$ref": "x.json"}',
        '{"type": "array", "items": ' * 300 + "{}" + "}" * 300,
    ],
)
def test_broken_schemas(text):
    with pytest.raises((BrokenJsonSchema, NotInferable)):
        sql_type(connect_type(text))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(30))
@given(c.rows())
@example(((c.value("A", model.DOUBLE),), [(-0.0,)]))
def test_round_trip(table):
    columns, rows = table
    serde = serde_for(Format("JSON_SR"), columns, "value", MemoryRegistry(), "s")
    assert c.same(serde.decode_many(serde.encode_many(rows), c.fail), c.unsigned(rows))


def test_lenient_reader_sends_no_request():
    columns = (c.value("A", INT), c.value("B", STRING))
    serde = topic_serde(Format("JSON_SR"), columns, "value", "t", MemoryRegistry(), lenient=True)
    assert serde.decode(b"\0\0\0\0\x63" + b'{"a":"7","B":{"x":1}}') == (7, '{"x":1}')
    assert serde.decode(None) is None
    with pytest.raises(DecodeError, match="Unknown magic byte"):
        serde.decode(b'{"a":7}')
    written = serde.encode((1, "b"))
    assert serde.decode(written) == (1, "b")
