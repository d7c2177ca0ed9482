from __future__ import annotations

import json

import pytest

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.formats.connect import NotInferable
from ksql.formats.registered_reader import RegisteredReader, shape
from ksql.formats.schema_registry import MemoryRegistry, Schema, SchemaNotFound, framed
from ksql.formats.table import DecodeError, serde_for
from tests.unit.formats import columns as c

TWO = 'syntax = "proto3"; message A { int32 a = 1; } message B { string b = 1; }'


def record(**fields):
    listed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return Schema("AVRO", json.dumps({"type": "record", "name": "R", "fields": listed}))


def names(looks):
    return [column.name for column in looks.columns]


@pytest.mark.parametrize("name", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_all_that_was_written_is_read(name):
    registry = MemoryRegistry()
    columns = (c.value("Ab", model.INTEGER), c.value("s", model.STRING))
    data = serde_for(Format(name), columns, "value", registry, "t-value").encode((7, "x"))
    written = RegisteredReader(registry)
    for _ in range(2):
        looks, row = written.read(data)
        assert dict(zip(names(looks), row, strict=True)) == {"Ab": 7, "s": "x"}
        assert (looks.format, looks.alone, written.kind(data)) == (name, False, name)


def test_a_bare_value_is_the_only_column():
    registry = MemoryRegistry()
    registry.register("s", Schema("AVRO", '"int"'))
    looks, row = RegisteredReader(registry).read(framed(1) + b"\x0e")
    assert (looks.alone, row) == (True, (7,))


def test_each_record_says_which_message_it_is():
    registry = MemoryRegistry()
    registry.register("s", Schema("PROTOBUF", TWO))
    written = RegisteredReader(registry)
    for path, body, expected in (
        (b"\0", b"\x08\x05", {"a": 5}),
        (b"\x02\x02", b"\x0a\x01x", {"b": "x"}),
    ):
        looks, row = written.read(framed(1) + path + body)
        assert dict(zip(names(looks), row, strict=True)) == expected
    assert shape(registry.by_id(1), registry, "B").columns[0].name == "b"
    with pytest.raises(DecodeError):
        written.read(framed(1))


def test_unreadable_records():
    registry = MemoryRegistry()
    registry.register("s", record(a=["null", "R"]))
    written = RegisteredReader(registry)
    with pytest.raises(NotInferable):
        written.read(framed(1) + b"\0")
    with pytest.raises(SchemaNotFound):
        written.read(framed(9) + b"\0")
    with pytest.raises(DecodeError):
        written.read(b"{}")
