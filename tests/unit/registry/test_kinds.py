"""All types of schemas in one way; and whatever is sent, nothing but a clear refusal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.formats.schema_registry import Reference, Schema
from ksql.registry.errors import InvalidSchema
from ksql.registry.kinds import KINDS, CheckedSchema, Level, checked, faults

GOOD = {
    "AVRO": {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "aliases": ["O"],
        "doc": "d",
        "fields": [
            {"name": "a", "type": "int", "default": 0, "order": "ignore", "aliases": ["o"]},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["x"], "default": "x"}},
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
            {"name": "m", "type": {"type": "map", "values": ["null", "R"]}, "default": {}},
        ],
    },
    "JSON": {
        "type": "object",
        "properties": {
            "a": {"type": ["null", "string"], "maxLength": 3, "pattern": "^a"},
            "b": {"type": "array", "items": [{"$ref": "#"}], "additionalItems": False},
            "c": {"oneOf": [{"const": 1}, {"not": {"enum": [1, "x"]}}]},
        },
        "required": ["a"],
        "dependencies": {"a": ["b"], "b": {"minProperties": 1}},
        "additionalProperties": {"type": "number", "multipleOf": 2, "exclusiveMinimum": 0},
    },
}
PROTO = """syntax = "proto3"; package p; message M { reserved 9; int32 a = 1 [deprecated = true];
  map<string, N> m = 2; oneof o { N n = 3; bytes b = 4; } optional bool z = 5;
  message N { E e = 1; } enum E { X = 0; } }"""
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 1 << 70)
    | st.floats(allow_nan=False)
    | st.sampled_from(["int", "record", "string", "object", "#", "a", "", "R", "^(", "\u0000"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "fields", "items", "properties", "$ref", "$id", "oneOf"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def take(kind, text):
    """The checked schema; None if it was refused as it should be."""
    try:
        return checked(Schema(kind, text), {})
    except InvalidSchema:
        return None


def places(document, path=()):
    """The ways to everything in a document."""
    yield path
    if not isinstance(document, dict | list):
        return
    for key, inner in document.items() if isinstance(document, dict) else enumerate(document):
        yield from places(inner, (*path, key))


def changed(document, path, new):
    if not path:
        return new
    copied = document.copy()
    copied[path[0]] = changed(document[path[0]], path[1:], new)
    return copied


@given(st.sampled_from(KINDS), st.text(max_size=60) | ANYTHING.map(json.dumps))
def test_anything_may_be_sent(kind, text):
    take(kind, text)


@given(st.sampled_from(sorted(GOOD)), ANYTHING, st.data())
def test_broken_schemas_are_refused_and_what_is_taken_can_be_compared(kind, new, data):
    path = data.draw(st.sampled_from(list(places(GOOD[kind]))))
    good = checked(Schema(kind, json.dumps(GOOD[kind])), {})
    other = take(kind, json.dumps(changed(GOOD[kind], path, new)))
    if other is not None:
        assert faults(Level.FULL, other, other) == []
        faults(Level.FULL, other, good)


@given(st.integers(0, len(PROTO)), st.integers(0, 12), st.text('{};=0 aM<>"', max_size=3))
def test_broken_protobuf_is_refused_and_what_is_taken_can_be_compared(at, count, new):
    good = checked(Schema("PROTOBUF", PROTO), {})
    other = take("PROTOBUF", PROTO[:at] + new + PROTO[at + count :])
    if other is not None:
        assert faults(Level.FULL, other, other) == []
        faults(Level.FULL, other, good)


@pytest.mark.parametrize("kind", KINDS)
def test_deep_schemas_are_refused_not_fatal(kind):
    deep = {
        "AVRO": '{"type":"array","items":' * 900 + '"int"' + "}" * 900,
        "JSON": '{"items":' * 900 + "{}" + "}" * 900,
        "PROTOBUF": "message M {" * 900 + "}" * 900,
    }
    error = take(kind, deep[kind])
    assert error is None or faults(Level.FULL, error, error) == []


def test_the_guid_follows_from_what_is_said():
    one = Schema("PROTOBUF", "message M { }")
    two = Schema("PROTOBUF", "// words\nmessage M {\n}")
    other = Schema("PROTOBUF", "message M { }", (Reference("x", "y", 1),))
    assert (
        CheckedSchema(one, {}).guid == CheckedSchema(two, {}).guid != CheckedSchema(other, {}).guid
    )
    assert CheckedSchema(one, {}).guid != CheckedSchema(Schema("JSON", one.text), {}).guid


@pytest.mark.parametrize(
    ("level", "reads_old", "read_by_old", "transitive"),
    [
        (Level.NONE, False, False, False),
        (Level.BACKWARD, True, False, False),
        (Level.FORWARD_TRANSITIVE, False, True, True),
        (Level.FULL, True, True, False),
    ],
)
def test_levels(level, reads_old, read_by_old, transitive):
    directions = (level.reads_old, level.read_by_old, level.transitive)
    assert directions == (reads_old, read_by_old, transitive)


def test_another_type_is_never_compatible():
    old, new = (CheckedSchema(Schema(kind, '"string"'), {}) for kind in ("AVRO", "JSON"))
    (fault,) = faults(Level.BACKWARD, new, old)
    assert "SCHEMA_TYPE_CHANGED" in fault
    assert faults(Level.NONE, new, old) == []
