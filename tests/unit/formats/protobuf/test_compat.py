"""Protobuf schemas: printed, kept, compared."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from ksql.formats.kind import BACKWARD
from ksql.formats.protobuf import resolved as proto
from ksql.formats.protobuf import text as proto_text
from ksql.formats.protobuf.compat import differences
from ksql.formats.protobuf.text import BrokenProtobuf

RICH = """
syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";

// a comment
message Order {
  repeated string tags = 2;
  int32 id = 1;
  map<string, Line> lines = 3;
  oneof how { int64 card = 4; Line cash = 5; }
  optional bool gift = 6;
  google.protobuf.Timestamp at = 7;
  Kind kind = 8;
  message Line { double price = 1; }
  enum Kind { NONE = 0; SOME = 1; }
}
"""


def kinds(reader, writer):
    changes = differences(proto.parse(reader, {}), proto.parse(writer, {}), BACKWARD)
    return [(one.kind, one.path) for one in changes]


def message(*fields, syntax="proto3", more=""):
    return f'syntax = "{syntax}"; message M {{ {" ".join(fields)} }} {more}'


def test_a_text_is_kept_as_it_came():
    assert proto.canonical_text(RICH, {}) == RICH.strip() + "\n"
    assert proto.identity(RICH) == proto.identity(RICH.replace("\n", "\n\n // more\n"))


def test_a_descriptor_becomes_a_text_that_says_the_same():
    sent = proto.serialized(RICH, {})
    text = proto.canonical_text(sent, {})
    assert 'syntax = "proto3";' in text
    assert kinds(text, RICH) == kinds(RICH, text) == []
    assert proto.serialized(text, {}) == sent


def test_descriptor_that_cannot_be_printed_is_kept():
    file = FileDescriptorProto.FromString(base64.b64decode(proto.serialized(RICH, {})))
    file.options.java_package = "x"
    sent = base64.b64encode(file.SerializeToString()).decode()
    assert proto.canonical_text(sent, {}) == sent
    with_option = RICH.replace("int32 id = 1;", "int32 id = 1 [deprecated = true];")
    assert "[deprecated = true]" in proto.canonical_text(with_option, {}, normalize=True)


def test_proto2_labels_and_defaults_are_printed():
    text = 'syntax = "proto2"; message M { required int32 a = 1; optional string b = 2; }'
    printed = proto.canonical_text(proto.serialized(text, {}), {})
    assert "required int32 a = 1;" in printed
    assert "optional string b = 2;" in printed


def test_options_of_fields_are_printed():
    file = FileDescriptorProto(name="x.proto")
    fields = file.message_type.add(name="M").field
    fields.add(name="a_b", number=1, type=9, label=1, json_name="aB", default_value='x"\\')
    fields.add(name="c", number=2, type=12, label=1, json_name="other", default_value="\\001")
    fields.add(name="d", number=3, type=8, label=3, json_name="d")
    fields.add(name="e", number=4, type=14, label=1, type_name=".E", default_value="Y")
    values = file.enum_type.add(name="E").value
    values.add(name="X", number=-1)
    values.add(name="Y", number=2)
    sent = base64.b64encode(file.SerializeToString()).decode()
    assert proto.canonical_text(sent, {}).splitlines() == [
        'syntax = "proto2";',
        "",
        "message M {",
        '  optional string a_b = 1 [default = "x\\"\\\\"];',
        '  optional bytes c = 2 [default = "\\001", json_name = "other"];',
        "  repeated bool d = 3;",
        "  optional .E e = 4 [default = Y];",
        "}",
        "",
        "enum E {",
        "  X = -1;",
        "  Y = 2;",
        "}",
    ]
    assert kinds(proto.canonical_text(sent, {}), sent) == []


def test_normalised_order_is_that_of_the_numbers():
    one = proto.canonical_text(message("int32 b = 2;", "int32 a = 1;"), {}, normalize=True)
    two = proto.canonical_text(message("int32 a = 1;", "int32 b = 2;"), {}, normalize=True)
    assert one == two


@pytest.mark.parametrize("text", ["", "message {", "message M { Nope x = 1; }", 'import "x";'])
def test_malformed_schema_is_refused(text):
    with pytest.raises(BrokenProtobuf):
        proto.parse(text or "nothing", {})


def test_imports_are_found_among_the_references():
    outer = 'syntax = "proto3"; import "inner.proto"; message M { Inner i = 1; }'
    inner = 'syntax = "proto3"; message Inner { int32 x = 1; }'
    changed = inner.replace("int32", "string")
    changes = differences(
        proto.parse(outer, {"inner.proto": changed}),
        proto.parse(outer, {"inner.proto": inner}),
        BACKWARD,
    )
    assert [one.kind for one in changes] == ["FIELD_SCALAR_KIND_CHANGED"]


GROUPS = [
    ["int32", "int64", "uint32", "uint64", "bool"],
    ["sint32", "sint64"],
    ["string", "bytes"],
    ["fixed32", "sfixed32"],
    ["fixed64", "sfixed64"],
    ["float"],
    ["double"],
]
SCALARS = [one for group in GROUPS for one in group]


@given(st.sampled_from(SCALARS), st.sampled_from(SCALARS))
def test_scalars_read_each_other_inside_of_their_group(new, old):
    together = any(new in group and old in group for group in GROUPS)
    changes = kinds(message(f"{new} a = 1;"), message(f"{old} a = 1;"))
    assert changes == ([] if together else [("FIELD_SCALAR_KIND_CHANGED", "#/M/1")])


@given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from(SCALARS)), unique_by=lambda p: p[0]))
def test_a_schema_reads_what_it_wrote_and_fields_come_and_go(fields):
    lines = [f"{type_} f{number} = {number};" for number, type_ in fields]
    assert kinds(message(*lines), message(*lines)) == []
    assert kinds(message(*lines, "string more = 99;"), message(*lines)) == []
    assert kinds(message(*lines), message(*lines, "string more = 99;")) == []
    assert proto_text.parse(proto.canonical_text(message(*lines), {}, normalize=True)) is not None


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("int32 renamed = 1;", "int32 a = 1;"),
        ("repeated string a = 1;", "string a = 1;"),
        ("oneof o { int32 a = 1; }", "int32 a = 1;"),
        ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; }"),
        ("E a = 1; enum E { X = 0; }", "int32 a = 1;"),
        ("E a = 1; enum E { X = 0; Y = 1; }", "E a = 1; enum E { X = 0; }"),
        ("optional int32 a = 1;", "int32 a = 1;"),
        ("map<string, int64> a = 1;", "map<string, int32> a = 1;"),
        ("reserved 1;", "int32 a = 1;"),
    ],
)
def test_compatible(new, old):
    assert kinds(message(new), message(old)) == []


@pytest.mark.parametrize(
    ("new", "old", "kind", "path"),
    [
        ("N a = 1; message N {}", "int32 a = 1;", "FIELD_KIND_CHANGED", "#/M/1"),
        ("map<string, int32> a = 1;", "int32 a = 1;", "FIELD_KIND_CHANGED", "#/M/1"),
        (
            "N a = 1; message N {} message O {}",
            "O a = 1; message N {} message O {}",
            "FIELD_NAMED_TYPE_CHANGED",
            "#/M/1",
        ),
        ("repeated int32 a = 1;", "int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED", "#/M/1"),
        ("", "message N {}", "MESSAGE_REMOVED", "#/M/N"),
        (
            "oneof o { int32 a = 1; int32 b = 2; }",
            "int32 a = 1; int32 b = 2;",
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
            "#/M/o",
        ),
        (
            "oneof o { int32 a = 1; int32 b = 2; }",
            "int32 a = 1; oneof o { int32 b = 2; }",
            "FIELD_MOVED_TO_EXISTING_ONEOF",
            "#/M/1",
        ),
        (
            "oneof o { int32 a = 1; }",
            "oneof o { int32 a = 1; int32 b = 2; }",
            "ONEOF_FIELD_REMOVED",
            "#/M/o/2",
        ),
        (
            "map<string, string> a = 1;",
            "map<string, int32> a = 1;",
            "FIELD_SCALAR_KIND_CHANGED",
            "#/M/1",
        ),
    ],
)
def test_incompatible(new, old, kind, path):
    assert kinds(message(new), message(old)) == [(kind, path)]


def test_required_fields_stay():
    def proto2(*fields):
        return message(*fields, syntax="proto2")

    with_it = proto2("required int32 a = 1;")
    assert kinds(with_it, proto2()) == [("REQUIRED_FIELD_ADDED", "#/M/1")]
    assert kinds(proto2(), with_it) == [("REQUIRED_FIELD_REMOVED", "#/M/1")]
    assert kinds(with_it, proto2("optional int32 a = 1;")) == [("REQUIRED_FIELD_ADDED", "#/M/1")]


def test_another_package_is_the_only_difference_reported():
    old = 'syntax = "proto3"; package a; message M { N n = 1; } message N {}'
    assert kinds(old.replace("package a", "package b"), old) == [("PACKAGE_CHANGED", "/")]
