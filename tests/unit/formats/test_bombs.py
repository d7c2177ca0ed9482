"""Schemas and records of some bytes that would become very large are bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array
from ksql.core.types.schema import Column
from ksql.formats.avro import read
from ksql.formats.avro.serde import AVRO
from ksql.formats.connect import (
    MOST_TYPES,
    Group,
    Items,
    Member,
    NotInferable,
    WithoutSqlType,
    sql_type,
)
from ksql.formats.json_sr.serde import JSON
from ksql.formats.kind import BACKWARD, SchemaWithImports
from ksql.formats.protobuf.kind import PROTOBUF
from ksql.formats.schema_registry import MemoryRegistry, Schema, framed
from ksql.formats.table import DecodeError, serde_for

LEVELS = 40


def c(**types):
    return tuple(Column(name, type_) for name, type_ in types.items())


def avro(levels, leaf="int"):
    schema: dict[str, Any] = {
        "type": "record",
        "name": "R0",
        "fields": [{"name": "a", "type": leaf}],
    }
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return json.dumps(schema)


def json_schema(levels, leaf="integer"):
    defs: dict[str, Any] = {"r0": {"type": "object", "properties": {"a": {"type": leaf}}}}
    for level in range(1, levels):
        below = {"$ref": f"#/definitions/r{level - 1}"}
        defs[f"r{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return json.dumps({"definitions": defs, "$ref": f"#/definitions/r{levels - 1}"})


def protobuf(levels, leaf="int32"):
    nested = [f"message R0 {{ {leaf} a = 1; }}"]
    nested += [
        f"message R{level} {{ R{level - 1} a = 1; repeated R{level - 1} b = 2; }}"
        for level in range(1, levels)
    ]
    return f'syntax = "proto3"; message M {{ {" ".join(nested)} R{levels - 1} a = 1; }}'


KINDS = [(AVRO, avro), (JSON, json_schema), (PROTOBUF, protobuf)]


def size(type_):
    match type_:
        case Group(members):
            return 1 + sum(size(each.type) for each in members)
        case Items(item):
            return 1 + size(item)
        case _:
            return 1


@pytest.mark.parametrize(("kind", "text"), KINDS)
def test_types_that_are_named_twice_are_not_spread_out_for_ever(kind, text):
    """20 levels of 2 kB took 3.4 GB; each level more doubled it."""
    type_ = kind.connect_type(SchemaWithImports(text(LEVELS), {}))
    assert size(type_) < 3 * MOST_TYPES
    with pytest.raises(NotInferable, match="more than 10000 types"):
        sql_type(type_)
    assert isinstance(sql_type(kind.connect_type(SchemaWithImports(text(10), {}))), model.Struct)


@pytest.mark.parametrize(("kind", "text"), KINDS)
def test_a_registry_compares_each_pair_once(kind, text):
    whole = SchemaWithImports(text(LEVELS), {})
    assert kind.canonical(whole, normalize=True)
    assert kind.differences(whole, whole, BACKWARD) == []
    leaf = {"AVRO": "string", "JSON": "string", "PROTOBUF": "string"}[kind.name]
    assert kind.differences(whole, SchemaWithImports(text(LEVELS, leaf), {}), BACKWARD)


@pytest.mark.parametrize(("kind", "text"), KINDS)
@pytest.mark.parametrize("encoder", [model.INTEGER, Array(model.STRING)])
def test_a_record_of_such_a_schema_that_does_not_fit_is_skipped(kind, text, encoder):
    registry = MemoryRegistry()
    number = registry.register("s-value", Schema(kind.name, text(LEVELS)))
    name = "JSON_SR" if kind.name == "JSON" else kind.name
    serde = serde_for(Format(name), c(A=encoder), "value", registry, "s")
    with pytest.raises(DecodeError):
        serde.decode(framed(number) + (b'{"a": {}}' if name == "JSON_SR" else b"\x00\x00\x00"))


def test_a_json_schema_of_many_types_is_read_once_per_type():
    several = {"type": ["string", "null", "string"], "x": 1}
    text = json.dumps({"properties": {"a": several, "b": {"type": ["string", "foo"]}}})
    members = JSON.connect_type(SchemaWithImports(text, {})).members
    assert members[0] == Member("a", sql_free("STRING"))
    assert members[1].type == WithoutSqlType("A schema of type foo")


def sql_free(name):
    return JSON.connect_type(SchemaWithImports(json.dumps({"type": name.lower()}), {}))


NOTHING: list[Any] = [
    "null",
    {"type": "fixed", "name": "F", "size": 0},
    {"type": "record", "name": "E", "fields": []},
    {
        "type": "record",
        "name": "E",
        "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": "null"}],
    },
]


def blocks(count, times):
    """An array in so many blocks, each of so many items."""
    zigzag, out = count * 2, b""
    while zigzag > 127:
        out, zigzag = out + bytes([zigzag & 127 | 128]), zigzag >> 7
    return (out + bytes([zigzag])) * times + b"\0"


def decoded(items, body, *columns, nested=False):
    array = {"type": "array", "items": {"type": "array", "items": items} if nested else items}
    fields = [{"name": "a", "type": array}, {"name": "z", "type": "int"}]
    registry = MemoryRegistry()
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    number = registry.register("s-value", Schema("AVRO", schema))
    serde = serde_for(Format("AVRO"), columns, "value", registry, "s")
    return serde.decode(framed(number) + body + b"\x0e")


def expanded(items, *, nested=False):
    fields = items["type"] == "record" if isinstance(items, dict) else False
    item = model.Struct((model.Field("A", model.STRING),)) if fields else model.BYTES
    return c(A=Array(Array(item)) if nested else Array(item), Z=model.INTEGER)


@pytest.mark.parametrize("items", [each for each in NOTHING if each != NOTHING[2]])
def test_items_of_no_bytes_are_counted_for_the_whole_record(items, monkeypatch):
    """4 kB gave 7.8 million; each block may claim as many as the record has bytes."""
    monkeypatch.setattr(read, "MOST_OF_NOTHING", 10)
    columns = expanded(items)
    assert decoded(items, blocks(5, 2), *columns)[1] == 7
    with pytest.raises(DecodeError):
        decoded(items, blocks(3, 4000), *columns)
    for _ in range(2):  # each record again
        assert len(decoded(items, blocks(5, 2), *columns)[0]) == 10
    inner = blocks(4, 1)
    body = blocks(4, 1)[:-1] + inner * 4 + b"\0"
    with pytest.raises(DecodeError):
        decoded(items, body, *expanded(items, nested=True), nested=True)


@pytest.mark.parametrize("items", NOTHING)
def test_unwanted_items_of_no_bytes_are_skipped(items):
    assert decoded(items, blocks(4_000, 2_000), *c(Z=model.INTEGER)) == (7,)
