"""Avro schemas: what is refused, how they are printed, what is compatible."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.formats.avro import strict as avro
from ksql.formats.avro.compat import differences
from ksql.formats.avro.text import canonical_text
from ksql.formats.avro.tree import PRIMITIVES, BrokenAvro
from ksql.formats.kind import BACKWARD, explained


def record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, type_, **more):
    return {"name": name, "type": type_, **more}


def enum(*symbols, **more):
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def parsed(schema):
    return avro.parse(json.dumps(schema))


def kinds(reader, writer):
    changes = differences(parsed(reader), parsed(writer), BACKWARD)
    return [(one.kind, one.path) for one in changes]


# --- refused


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("", "zero-length"),
        ("{", "unexpected end"),
        ("5", "no type"),
        ('{"name": "R"}', "no type"),
        ('"nothing"', '"nothing" is not defined'),
        ('{"type": "foo"}', '"foo" is not defined'),
        ('{"type": "array"}', '"items" is missing'),
        ('{"type": "record", "name": "A b", "fields": []}', '"A b" is no name'),
        ('{"type": "record", "name": "A"}', '"fields" is missing'),
        ('{"type": "record", "name": "A", "fields": 1}', "are no list"),
        ('{"type": "record", "fields": []}', '"name" is missing'),
        ('{"type": "record", "name": "int", "fields": []}', "cannot be defined again"),
        ('["int", "int"]', "has int twice"),
        ('["null", ["int"]]', "directly inside a union"),
        ('{"type": "enum", "name": "E", "symbols": ["a", "a"]}', "not distinct"),
        ('{"type": "enum", "name": "E", "symbols": ["1"]}', '"1" is no name'),
        ('{"type": "enum", "name": "E", "symbols": ["a"], "default": "b"}', "no symbol"),
        ('{"type": "fixed", "name": "F", "size": -1}', "has the size -1"),
        ("[" * 2000 + "]" * 2000, "nested|recursion|depth|unexpected"),
    ],
)
def test_malformed_schema_is_refused(schema, reason):
    with pytest.raises(BrokenAvro, match=reason):
        avro.parse(schema)


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", "x"),
        ("int", 1 << 31),
        ("int", True),
        ("long", 1.5),
        ("boolean", 1),
        ("string", None),
        ("null", "null"),
        (["null", "int"], "x"),
        ({"type": "array", "items": "int"}, ["a"]),
        ({"type": "map", "values": "int"}, {"a": "b"}),
        (enum("a"), "b"),
        (record(field("x", "int"), name="I"), {}),
    ],
)
def test_a_default_must_fit_its_field(type_, default):
    with pytest.raises(BrokenAvro, match=r"default .* of the field \"f\""):
        parsed(record(field("f", type_, default=default)))


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("long", 1 << 40),
        ("double", 1),
        ("float", "NaN"),
        ("bytes", "\u00ff"),
        (["int", "null"], None),
        ({"type": "array", "items": "int"}, []),
        (enum("a"), "a"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab"),
        (record(field("x", "int", default=1), name="I"), {}),
    ],
)
def test_defaults_that_fit(type_, default):
    parsed(record(field("f", type_, default=default)))


def test_twice_the_same_field_or_name():
    with pytest.raises(BrokenAvro, match='two fields "a"'):
        parsed(record(field("a", "int"), field("a", "int")))
    with pytest.raises(BrokenAvro, match="defined twice"):
        parsed(record(field("a", enum("x")), field("b", enum("y"))))


# --- printed


def test_attributes_come_in_avros_order_and_nothing_is_lost():
    sent = """
    { "fields": [ {"type": {"logicalType": "date", "type": "int"}, "name": "a", "x": [1]},
                  {"aliases": ["o"], "default": null, "type": ["null", "R"], "name": "b",
                   "order": "ignore", "doc": "d"} ],
      "z": 1, "aliases": ["s.Old", "other.Old"], "doc": "D", "namespace": "s", "name": "R",
      "type": "record", "connect.name": "c" }
    """
    assert canonical_text(avro.parse(sent)) == (
        '{"type":"record","name":"R","namespace":"s","doc":"D","fields":['
        '{"name":"a","type":{"type":"int","logicalType":"date"},"x":[1]},'
        '{"name":"b","type":["null","R"],"doc":"d","default":null,"order":"ignore",'
        '"aliases":["o"]}],"z":1,"connect.name":"c","aliases":["Old","other.Old"]}'
    )


def test_normalised_extra_attributes_are_sorted():
    one = {"type": "int", "b": 1, "a": 2}
    assert canonical_text(parsed(one), normalize=True) == '{"type":"int","a":2,"b":1}'


def test_names_of_other_namespaces_are_written_out():
    inner = {"type": "fixed", "name": "t.F", "size": 1}
    schema = record(field("a", inner), field("b", "t.F"), namespace="s")
    assert '"name":"F","namespace":"t"' in canonical_text(parsed(schema))
    assert '{"name":"b","type":"t.F"}' in canonical_text(parsed(schema))


def test_references_are_known_by_name_and_not_printed():
    inner = json.dumps(record(name="I", namespace="s"))
    outer = json.dumps(record(field("a", "I"), namespace="s"))
    wrapped = json.dumps({"type": "array", "items": "s.J"})
    middle = json.dumps(record(field("i", "s.I"), name="J", namespace="s"))
    assert '"type":"I"' in canonical_text(avro.parse(outer, [inner]))
    assert canonical_text(avro.parse(wrapped, [middle, inner])) == '{"type":"array","items":"s.J"}'


NAMES = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def types(draw, depth=2):
    plain = st.sampled_from(sorted(PRIMITIVES))
    if depth == 0:
        return draw(plain)
    inner = types(depth=depth - 1)
    kind = draw(st.sampled_from(["plain", "array", "map", "union", "record", "enum"]))
    match kind:
        case "array":
            return {"type": "array", "items": draw(inner)}
        case "map":
            return {"type": "map", "values": draw(inner)}
        case "union":
            return draw(st.lists(plain, min_size=1, max_size=3, unique=True))
        case "enum":
            name = "E" + draw(st.uuids()).hex
            return {"type": "enum", "name": name, "symbols": draw(st.permutations(["x", "y"]))}
        case "record":
            return draw(records(depth))
        case _:
            return draw(plain)


@st.composite
def records(draw, depth=2):
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    fields = [field(name, draw(types(depth=depth - 1))) for name in names]
    return record(*fields, name="R" + draw(st.uuids()).hex)


@given(types())
def test_printing_keeps_what_was_parsed(schema):
    text = canonical_text(parsed(schema))
    assert canonical_text(avro.parse(text)) == text


@given(types())
def test_a_schema_reads_what_it_wrote(schema):
    assert kinds(schema, schema) == []


@given(records(), st.data())
def test_an_added_field_with_a_default_and_a_removed_field_are_fine(schema, data):
    more = field("added", ["null", "string"], default=None)
    assert kinds({**schema, "fields": [*schema["fields"], more]}, schema) == []
    assert kinds(schema, {**schema, "fields": [*schema["fields"], more]}) == []
    required = field("added", data.draw(types()))
    assert kinds({**schema, "fields": [*schema["fields"], required]}, schema) == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", f"/fields/{len(schema['fields'])}")
    ]


# --- compared


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "long"),
        ("float", "int"),
        ("string", "bytes"),
        ("bytes", "string"),
        (["null", "long"], "int"),
        (["null", "string"], ["string", "null"]),
        ("int", ["int"]),
        (enum("a", "b"), enum("a")),
        (enum("a", default="a"), enum("b")),
        (record(name="N", aliases=["R"]), record()),
        (record(name="t.R"), record(name="s.R")),
        (record(field("n", "int", aliases=["o"])), record(field("o", "int"))),
    ],
)
def test_compatible(reader, writer):
    assert kinds(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "kind", "path"),
    [
        ("int", "long", "TYPE_MISMATCH", "/"),
        ("int", ["int", "string"], "TYPE_MISMATCH", "/"),
        (["int"], "string", "MISSING_UNION_BRANCH", "/"),
        (["null", "int"], ["null", "string"], "MISSING_UNION_BRANCH", "/1"),
        (enum("a"), enum("a", "b"), "MISSING_ENUM_SYMBOLS", "/symbols"),
        (record(name="N"), record(name="O"), "NAME_MISMATCH", "/name"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            "FIXED_SIZE_MISMATCH",
            "/size",
        ),
        (
            record(field("a", {"type": "map", "values": "int"})),
            record(field("a", {"type": "map", "values": "string"})),
            "TYPE_MISMATCH",
            "/fields/0/type/values",
        ),
        ({"type": "array", "items": "int"}, "int", "TYPE_MISMATCH", "/"),
    ],
)
def test_incompatible(reader, writer, kind, path):
    assert (kind, path) in kinds(reader, writer)


def test_recursion_and_shared_names_end():
    tree = record(field("next", ["null", "R"], default=None), field("v", "int"))
    assert kinds(tree, tree) == []
    other = record(field("next", ["null", "R"], default=None), field("v", "string"))
    assert ("TYPE_MISMATCH", "/fields/1/type") in kinds(tree, other)
    wide = "int"
    for level in range(40):  # each level twice: 2 ** 40 ways through it
        again = wide if level == 0 else f"R{level - 1}"
        wide = record(field("a", wide), field("b", again), name=f"R{level}")
    assert kinds(wide, wide) == []


def test_a_difference_is_reported_once_with_its_place():
    reader, writer = record(field("n", "int")), record()
    (text,) = explained(differences(parsed(reader), parsed(writer), BACKWARD) * 2)
    assert text == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field n at path"
        " /fields/0 in the new schema has no default value and is missing in the old schema',"
        " additionalInfo:'n'}"
    )
