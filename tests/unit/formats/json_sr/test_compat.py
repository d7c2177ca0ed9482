"""JSON schemas: what is refused, what is compatible."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.formats.json_sr import model as json_model
from ksql.formats.json_sr.compat import differences
from ksql.formats.json_sr.schema import BrokenJsonSchema
from ksql.formats.kind import BACKWARD
from ksql.java.regex import compile_java
from ksql.java.regex import matcher as budgets


def kinds(reader, writer, imported=None):
    new, old = (json_model.parse(json.dumps(one), imported or {}) for one in (reader, writer))
    return [(one.kind, one.path) for one in differences(new, old, BACKWARD)]


def thing(_required=(), _more=None, **properties):
    out = {"type": "object", "properties": properties}
    if _required:
        out["required"] = list(_required)
    return out if _more is None else {**out, "additionalProperties": _more}


DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
TEXT, INT, NUMBER, NULL = ({"type": one} for one in ("string", "integer", "number", "null"))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "5",
        '{"type": "foo"}',
        '{"properties": 1}',
        '{"$ref": "#/nowhere"}',
        '{"$ref": "other.json"}',
        '{"properties": {"a": {"$ref": "#/definitions/a"}}}',
        '{"$ref": "#"}',
        '{"dependencies": {"a": {"$ref": "#/nowhere"}}}',
        '{"items": [{"not": {"$ref": "#/nowhere"}}]}',
        '{"minLength": -1}',
    ],
)
def test_malformed_schema_is_refused(text):
    with pytest.raises(BrokenJsonSchema):
        json_model.parse(text, {})


def test_text_loses_its_white_space_and_on_request_its_order():
    sent = '{ "type": "object", "properties": {"b": {}, "a": {}} }'
    assert json_model.canonical_text(sent) == '{"type":"object","properties":{"b":{},"a":{}}}'
    assert json_model.canonical_text(sent, normalize=True) == (
        '{"properties":{"a":{},"b":{}},"type":"object"}'
    )


def test_references_lead_into_the_document_and_to_others():
    inner = {"definitions": {"t": TEXT}, "a": {"$ref": "#/definitions/t"}}
    assert kinds({"definitions": {"t": TEXT}, "$ref": "#/definitions/t"}, TEXT) == []
    by_id = {"definitions": {"x": {"$id": "http://x/t", "type": "string"}}, "$ref": "http://x/t"}
    assert kinds(by_id, TEXT) == []
    other = {"other.json": json.dumps(inner)}
    assert kinds({"$ref": "other.json#/definitions/t"}, TEXT, other) == []
    assert kinds({"$ref": "other.json#/definitions/t"}, INT, other) == [("TYPE_CHANGED", "#")]


def test_recursive_schemas_end():
    tree = {"$defs": {"t": thing(next={"$ref": "#/$defs/t"}, v=INT)}, "$ref": "#/$defs/t"}
    other = json.loads(json.dumps(tree).replace("integer", "string"))
    assert kinds(tree, tree) == []
    assert kinds(tree, other) == [("TYPE_CHANGED", "#/properties/v")]


@st.composite
def schemas(draw, depth=2):
    plain = st.sampled_from([TEXT, INT, NUMBER, NULL, {}, True, {"enum": ["a", 1]}])
    if depth == 0:
        return draw(plain)
    inner = schemas(depth=depth - 1)
    kind = draw(st.sampled_from(["plain", "object", "array", "anyOf", "oneOf", "allOf", "not"]))
    match kind:
        case "object":
            properties = draw(st.dictionaries(st.sampled_from("abcd"), inner, max_size=3))
            more = draw(st.sampled_from([True, False, TEXT]))
            required = draw(st.lists(st.sampled_from("abcd"), unique=True))
            return thing(required, more, **properties)
        case "array":
            return {"type": "array", "items": draw(inner), "maxItems": draw(st.integers(0, 9))}
        case "anyOf" | "oneOf" | "allOf":
            return {kind: draw(st.lists(inner, min_size=1, max_size=3))}
        case "not":
            return {"not": draw(inner)}
        case _:
            return draw(plain)


@given(schemas())
def test_a_schema_takes_what_it_took(schema):
    assert kinds(schema, schema) == []


@given(schemas())
def test_everything_takes_it_and_nothing_gives_it(schema):
    assert kinds(True, schema) == []
    assert kinds(schema, False) == []


@given(st.dictionaries(st.sampled_from("abcd"), schemas(depth=1), max_size=3))
def test_an_optional_property_may_come_into_a_closed_object(properties):
    closed = thing((), False, **properties)
    wider = thing((), False, **properties, added=TEXT)
    assert kinds(wider, closed) == []
    assert kinds(closed, wider) == [("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
                                     "#/properties/added")]  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (NUMBER, INT),
        ({"type": ["null", "string"]}, TEXT),
        ({"oneOf": [NULL, TEXT]}, TEXT),
        (TEXT, {"anyOf": [TEXT]}),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}),
        (TEXT, {"type": "string", "pattern": "a"}),
        ({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 4}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}),
        ({"enum": ["a"]}, {"const": "a"}),
        (thing(), thing(a=TEXT)),
        (thing(a={}), thing()),
        (thing(a=TEXT), thing(("a",), a=TEXT)),
        (thing(("a",), a={**TEXT, "default": "x"}), thing(a=TEXT)),
        (thing(("a",), False, a={**TEXT, "default": "x"}), thing((), False)),
        (thing((), TEXT), thing((), False)),
        (thing((), TEXT), thing((), TEXT, a=TEXT)),
        (thing((), TEXT, a=TEXT), thing((), TEXT)),
        ({"not": TEXT}, {"not": {"type": ["string", "null"]}}),
        ({"type": "array", "items": [TEXT]}, {"type": "array", "items": [TEXT, INT]}),
        (
            {"type": "array", "items": [TEXT, INT], "additionalItems": False},
            {"type": "array", "items": [TEXT], "additionalItems": False},
        ),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"allOf": [thing()]}, {"allOf": [thing(), thing(a=TEXT)]}),
        ({"anyOf": [TEXT, INT, NULL]}, {"anyOf": [INT, TEXT]}),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}),
        ({"title": "new", "type": "string"}, TEXT),
        ({"allOf": [TEXT, {"maxLength": 9}]}, {"type": "string", "maxLength": 5}),
        (TEXT, {"allOf": [TEXT, {"maxLength": 9}]}),
        ({"patternProperties": {"(": TEXT}}, {"patternProperties": {"(": TEXT}}),
        (
            {"dependencies": {"a": {"required": ["b"]}}},
            {"dependencies": {"a": {"required": ["b"]}}},
        ),
    ],
)
def test_compatible(reader, writer):
    assert kinds(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "kind", "path"),
    [
        (INT, TEXT, "TYPE_CHANGED", "#"),
        (INT, NUMBER, "TYPE_NARROWED", "#"),
        (TEXT, {"type": ["null", "string"]}, "SUM_TYPE_NARROWED", "#"),
        ({"type": "string", "maxLength": 4}, TEXT, "MAX_LENGTH_ADDED", "#/maxLength"),
        (
            {"type": "integer", "minimum": 2},
            {"type": "integer", "minimum": 1},
            "MINIMUM_INCREASED",
            "#/minimum",
        ),
        (
            {"type": "integer", "exclusiveMaximum": 1},
            {"type": "integer", "exclusiveMaximum": 2},
            "EXCLUSIVE_MAXIMUM_DECREASED",
            "#/exclusiveMaximum",
        ),
        ({"type": "string", "pattern": "a"}, TEXT, "PATTERN_ADDED", "#/pattern"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_NARROWED", "#/enum"),
        ({"enum": ["a"]}, {"enum": ["b"]}, "ENUM_ARRAY_CHANGED", "#/enum"),
        (thing(a=TEXT), thing(), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a"),
        (
            thing(("a",), False, a=TEXT),
            thing((), False),
            "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
            "#/properties/a",
        ),
        (
            thing((), TEXT, a=INT),
            thing((), TEXT),
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "#/properties/a",
        ),
        (
            {"patternProperties": {"^a": TEXT}, "additionalProperties": False},
            {**thing(a1=INT), "additionalProperties": False, "patternProperties": {"^a": TEXT}},
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "#/properties/a1",
        ),
        (thing(("a",), a=TEXT), thing(a=TEXT), "REQUIRED_ATTRIBUTE_ADDED", "#/required/a"),
        (thing((), False), thing(), "ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties"),
        (thing((), TEXT), thing(), "ADDITIONAL_PROPERTIES_NARROWED", "#/additionalProperties"),
        (
            {"type": "array", "items": TEXT},
            {"type": "array"},
            "SCHEMA_ADDED",
            "#/items",
        ),
        (
            {"type": "array", "uniqueItems": True},
            {"type": "array"},
            "UNIQUE_ITEMS_ADDED",
            "#/uniqueItems",
        ),
        (
            {"type": "array", "prefixItems": [TEXT, INT]},
            {"type": "array", "prefixItems": [TEXT]},
            "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
            "#/items/1",
        ),
        (
            {"type": "array", "items": [TEXT], "additionalItems": False},
            {"type": "array", "items": [TEXT, INT], "additionalItems": False},
            "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
            "#/items/1",
        ),
        ({"not": {"type": ["string", "null"]}}, {"not": TEXT}, "NOT_TYPE_EXTENDED", "#"),
        ({"anyOf": [TEXT, INT]}, {"allOf": [TEXT, INT]}, "COMBINED_TYPE_CHANGED", "#"),
        ({"oneOf": [TEXT, INT]}, {"oneOf": [TEXT, INT, NULL]}, "SUM_TYPE_NARROWED", "#"),
        (
            {"oneOf": [TEXT, INT]},
            {"oneOf": [TEXT, NULL]},
            "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
            "#",
        ),
        (
            {
                "dependentRequired": {"a": ["b"]},
                "$schema": "https://json-schema.org/draft/2020-12/schema",
            },
            {"type": "object"},
            "DEPENDENCY_ARRAY_ADDED",
            "#/dependencies/a",
        ),
        ({"allOf": [TEXT, INT]}, TEXT, "TYPE_CHANGED", "#"),
        (INT, {"oneOf": [TEXT, NULL]}, "TYPE_CHANGED", "#"),
        ({"oneOf": [TEXT, INT]}, {"anyOf": [TEXT, INT]}, "COMBINED_TYPE_CHANGED", "#"),
        ({"allOf": [TEXT, INT, NULL]}, {"allOf": [TEXT, INT]}, "PRODUCT_TYPE_EXTENDED", "#"),
        ({"type": "number", "multipleOf": 2}, NUMBER, "MULTIPLE_OF_ADDED", "#/multipleOf"),
        (
            {"type": "number", "multipleOf": 3},
            {"type": "number", "multipleOf": 2},
            "MULTIPLE_OF_CHANGED",
            "#/multipleOf",
        ),
        (
            {**DRAFT_4, "type": "number", "minimum": 1, "exclusiveMinimum": True},
            {**DRAFT_4, "type": "number", "minimum": 1},
            "EXCLUSIVE_MINIMUM_ADDED",
            "#/exclusiveMinimum",
        ),
        (
            {"dependencies": {"a": ["b", "c"]}},
            {"dependencies": {"a": ["b"]}},
            "DEPENDENCY_ARRAY_EXTENDED",
            "#/dependencies/a",
        ),
        (
            {"dependencies": {"a": ["c"]}},
            {"dependencies": {"a": ["b"]}},
            "DEPENDENCY_ARRAY_CHANGED",
            "#/dependencies/a",
        ),
        (
            {"dependencies": {"a": {"required": ["b"]}}},
            {"type": "object"},
            "DEPENDENCY_SCHEMA_ADDED",
            "#/dependencies/a",
        ),
        (
            {"type": "array", "items": [TEXT], "additionalItems": TEXT},
            {"type": "array", "items": [TEXT, INT], "additionalItems": TEXT},
            "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "#/items/1",
        ),
        (
            {"type": "array", "items": [TEXT, INT], "additionalItems": TEXT},
            {"type": "array", "items": [TEXT], "additionalItems": TEXT},
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "#/items/1",
        ),
        (
            {"type": "number", "multipleOf": 4},
            {"type": "number", "multipleOf": 2},
            "MULTIPLE_OF_EXPANDED",
            "#/multipleOf",
        ),
    ],
)
def test_incompatible(reader, writer, kind, path):
    assert (kind, path) in kinds(reader, writer)


@pytest.mark.parametrize(
    ("pattern", "result"),
    [
        ("^(a+)+$", []),  # linear, and so at once: it does not cover the name
        ("^(?=a)(a|aa)+$", ["PATTERN_PROPERTIES_UNDECIDED"]),
    ],
)
def test_foreign_pattern_blocks_nothing(pattern, result, monkeypatch):
    """The pattern of a schema goes through the helper for all patterns from outside."""
    monkeypatch.setattr(budgets, "LONGEST_S", 0.05)
    compile_java.cache_clear()
    name = "a" * 80 + "!"
    new = {**thing((), False), "patternProperties": {pattern: TEXT}}
    expected = result or ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]
    assert [kind for kind, _ in kinds(new, thing((), False, **{name: TEXT}))] == expected
